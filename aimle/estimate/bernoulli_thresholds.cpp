// Thresholds of independent entries: zero, and no other entry changes.
#include <algorithm>
#include <cmath>

#include "aimle/map/bernoulli.h"
#include "aimle/map/swap_finder.h"

namespace aimle {
namespace {

template <class T>
class BernoulliThresholds final : public SwapFinder<T> {
 public:
  explicit BernoulliThresholds(const Bernoulli& solver) : n_(solver.n) {}

  bool reads_noise() const override { return false; }

  bool find(const SwapRow<T>& row, double* threshold, double* difference) override {
    int32_t nan = 0;
    for (int64_t j = 0; j < n_; ++j) {
      nan |= (row.x[j] != row.x[j]) & (row.mask == nullptr || row.mask[j]);
    }
    if (nan != 0) return false;
    std::fill_n(threshold, n_, 0.0);
    for (int64_t j = 0; j < n_; ++j) difference[j] = static_cast<double>(row.d[j]);
    return true;
  }

 private:
  int64_t n_;
};

}  // namespace

template <class T>
std::unique_ptr<SwapFinder<T>> Bernoulli::swap_finder() const {
  return std::make_unique<BernoulliThresholds<T>>(*this);
}
template std::unique_ptr<SwapFinder<float>> Bernoulli::swap_finder() const;
template std::unique_ptr<SwapFinder<double>> Bernoulli::swap_finder() const;

}  // namespace aimle
