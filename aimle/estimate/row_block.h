// A block of rows passing through the stages: the cache-sized unit of work of the estimators.
// Private to aimle/estimate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "aimle/estimate/perturb.h"
#include "aimle/estimate/row_kernels.h"
#include "aimle/estimate/settings.h"
#include "aimle/estimate/step_size.h"
#include "aimle/map/solver.h"

namespace aimle {

/// Rows per block: enough to fill the lanes of the solvers, few enough to stay in the first two
/// levels of the cache, or, for eight long rows, in the last one; one for very long rows.
inline int64_t block_rows(int64_t n) {
  constexpr int64_t kFloats = 16 * 1024, kMostFloats = 128 * 1024;
  const int64_t fit = kFloats / std::max<int64_t>(n, 1);
  return fit >= 64 ? 64 : fit >= 16 ? 16 : 8 * n <= kMostFloats ? 8 : 1;
}

/// The noise of rows [first, first + count) and what the solver needs for them.
template <class T>
class Block {
 public:
  /// A block for at most `rows` rows.
  Block(const PassSettings& settings, const Examples<T>& examples, int64_t rows)
      : settings_(settings),
        examples_(examples),
        kernels_(row_kernels<T>()),
        capacity_(std::min(rows, block_rows(examples.n))) {
    const auto size = static_cast<size_t>(capacity_ * examples.n);
    eps_.resize(size);
    places_.resize(static_cast<size_t>(capacity_));
    status_.resize(static_cast<size_t>(capacity_));
    if (examples.mask != nullptr) mask_ = std::make_unique<bool[]>(size);
    if (examples.k != nullptr) k_.resize(static_cast<size_t>(capacity_));
    if (examples.data.stride != 0) instance_.resize(static_cast<size_t>(capacity_));
  }

  int64_t capacity() const { return capacity_; }
  int64_t first() const { return first_; }
  int64_t count() const { return count_; }
  int64_t example(int64_t i) const { return places_[static_cast<size_t>(i)].example; }
  int64_t sample(int64_t i) const { return places_[static_cast<size_t>(i)].sample; }
  const float* eps(int64_t i) const { return eps_.data() + i * examples_.n; }
  Status status(int64_t i) const { return status_[static_cast<size_t>(i)]; }

  /// Moves to rows [first, first + count) and draws their noise.
  void load(int64_t first, int64_t count) {
    first_ = first;
    count_ = count;
    Place place{.example = first / settings_.samples, .sample = first % settings_.samples};
    for (int64_t i = 0; i < count; ++i) {
      places_[static_cast<size_t>(i)] = place;
      if (!instance_.empty()) instance_[static_cast<size_t>(i)] = place.example;
      if (++place.sample == settings_.samples) place = {.example = place.example + 1, .sample = 0};
    }
    const int64_t n = examples_.n;
    fill_rows(settings_.noise, examples_.key,
              {.first = first, .count = count, .samples = settings_.samples, .n = n}, eps_.data());
    for (int64_t i = 0; (mask_ || !k_.empty()) && i < count; ++i) {
      if (mask_) std::copy_n(examples_.mask + example(i) * n, n, mask_.get() + i * n);
      if (!k_.empty()) k_[static_cast<size_t>(i)] = examples_.k[example(i)];
    }
  }

  /// x[i] = the perturbed scores of the block's rows.
  void perturb(Signs sign, T* x) const {
    const auto tau = static_cast<T>(settings_.theta_temperature);
    const int64_t n = examples_.n;
    for (int64_t i = 0; i < count_; ++i) {
      kernels_.perturb(examples_.theta + example(i) * n, eps(i), tau, sign, n, x + i * n);
    }
  }

  /// out = the scores of row i after a step of `lambda` (signed) along d. Infinite entries do not
  /// move, whatever their gradient; `all_free` means that there are none.
  void step_row(int64_t i, Signs sign, bool all_free, const T* d, double lambda, T* out) {
    const auto tau = static_cast<T>(settings_.target_temperature);
    const int64_t n = examples_.n;
    const T* theta = examples_.theta + example(i) * n;
    if (!all_free) {
      moving_.resize(static_cast<size_t>(n));
      for (int64_t j = 0; j < n; ++j) {
        moving_[static_cast<size_t>(j)] = std::isinf(theta[j]) ? T(0) : d[j];
      }
      d = moving_.data();
    }
    kernels_.step(theta, d, lambda, eps(i), tau, sign, n, out);
  }

  /// Steps all rows to both sides at once, if no entry is infinite; steps is [count].
  void step_both(Signs sign, const StepRow<T>* steps, T* left, T* right) const {
    const auto tau = static_cast<T>(settings_.target_temperature);
    kernels_.step_both(steps, count_, eps_.data(), tau, sign, examples_.n, left, right);
  }

  /// Subtracts the mean of noise at temperature tau from the scores of all rows, if it is centred.
  void center(Signs sign, double tau, T* x) const {
    if (settings_.noise.kind == NoiseKind::kNone || settings_.noise_mean == 0.0) return;
    const T shift = centring<T>(settings_.noise_mean, tau, sign);
    for (int64_t e = 0; e < count_ * examples_.n; ++e) x[e] -= shift;
  }

  /// Counts the scores of all rows, and those that a solver of costs clips.
  void count_clipped(const T* x, Clipping& seen) const {
    const bool* mask = mask_.get();
    int64_t clipped = 0, costs = 0;
    for (int64_t e = 0; e < count_ * examples_.n; ++e) {
      const bool open = (x[e] < std::numeric_limits<T>::infinity()) & (mask == nullptr || mask[e]);
      clipped += open & (x[e] < T(0));
      costs += open;
    }
    seen.clipped += clipped;
    seen.costs += costs;
  }

  /// Solves the block's rows of x into z.
  void solve(const Solver& solver, const T* x, T* z) {
    solver.solve_rows(Rows<T>{.count = count_,
                              .scores = x,
                              .mask = mask_.get(),
                              .k = k_.empty() ? nullptr : k_.data(),
                              .data = examples_.data,
                              .instance = instance_.empty() ? nullptr : instance_.data(),
                              .z = z,
                              .status = status_.data()});
  }

 private:
  struct Place {
    int64_t example;
    int64_t sample;
  };

  const PassSettings& settings_;
  const Examples<T>& examples_;
  const RowKernels<T>& kernels_;
  int64_t capacity_;
  int64_t first_ = 0;
  int64_t count_ = 0;
  std::vector<float> eps_;
  std::vector<Place> places_;
  std::unique_ptr<bool[]> mask_;
  std::vector<int64_t> k_;
  std::vector<int64_t> instance_;
  std::vector<Status> status_;
  std::vector<T> moving_;  // a gradient row without the entries that cannot move
};

/// Calls visit(block) for consecutive blocks that cover the rows of examples [begin, end).
template <class T, class Visit>
void for_each_block(Block<T>& block, const PassSettings& settings, int64_t begin, int64_t end,
                    Visit visit) {
  const int64_t last = end * settings.samples;
  for (int64_t row = begin * settings.samples; row < last; row += block.capacity()) {
    block.load(row, std::min(block.capacity(), last - row));
    visit(block);
  }
}

}  // namespace aimle
