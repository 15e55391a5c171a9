#include "aimle/torch/solve/solver_status.h"

#include <c10/util/Exception.h>

#include <cmath>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "aimle/map/map.h"

namespace aimle::ops {
namespace {

using Index = std::vector<int64_t>;

std::string join(const Index& index) {
  std::ostringstream text;
  for (size_t i = 0; i < index.size(); ++i) text << (i ? ", " : "") << index[i];
  return text.str();
}

Index unravel(int64_t flat, at::IntArrayRef shape) {
  Index index(shape.size());
  for (size_t i = shape.size(); i-- > 0; flat /= shape[i]) index[i] = flat % shape[i];
  return index;
}

at::Tensor row_of(at::Tensor tensor, const Index& row) {
  for (const int64_t i : row) tensor = tensor.select(0, i);
  return tensor.cpu().contiguous();
}

/// One bad row on the host, and its error message.
class BadRow {
 public:
  BadRow(const SolverInput& input, int64_t flat)
      : input_(input),
        index_(unravel(flat, input.batch())),
        instance_(input.scores.sizes().slice(index_.size())),
        scores_(row_of(input.scores.detach(), index_).to(at::kDouble)) {
    if (input.mask) mask_ = row_of(input.mask->expand(input.scores.sizes()), index_);
    if (input.row_data && input.data_dims == 0) {
      k_ = row_of(input.row_data->expand(input.batch()), index_).item<int64_t>();
    }
  }

  std::string describe(Status status) const {
    std::ostringstream text;
    text << "[aimle::" << input_.op << "] ";
    if (index_.size() == 1) text << "row " << index_[0] << ": ";
    if (index_.size() > 1) text << "row (" << join(index_) << "): ";
    switch (status) {
      case Status::kNaN:
        text << "expected numbers but got " << first([](double x) { return std::isnan(x); });
        break;
      case Status::kBadK:
        text << "expected 0 <= k <= " << size() << " but got k=" << k_;
        break;
      case Status::kTooFewEntries:
        if (k_ < 0) {
          text << "expected a solution but " << aimle::describe(status) << ": they leave "
               << choosable() << " of " << size();
          break;
        }
        text << "expected at least k=" << k_ << " entries to choose from but mask and -inf leave "
             << choosable() << " of " << size();
        break;
      case Status::kDisconnected:
        text << "expected a connected graph but " << aimle::describe(status);
        break;
      case Status::kNegativeCost:
        text << "expected costs >= 0 under negative=\"error\" but got "
             << first([](double x) { return x < 0; });
        break;
      default:
        text << aimle::describe(status);
    }
    return text.str();
  }

 private:
  int64_t size() const { return scores_.numel(); }
  bool allowed(int64_t i) const { return !mask_.defined() || mask_.const_data_ptr<bool>()[i]; }
  double score(int64_t i) const { return scores_.const_data_ptr<double>()[i]; }

  /// The first entry for which the predicate is true, with its index in the whole tensor.
  template <class Predicate>
  std::string first(Predicate predicate) const {
    for (int64_t i = 0; i < size(); ++i) {
      if (!allowed(i) || !predicate(score(i))) continue;
      Index index = index_;
      for (const int64_t j : unravel(i, instance_)) index.push_back(j);
      std::ostringstream text;
      text << input_.name << "[" << join(index) << "]=" << score(i);
      return text.str();
    }
    return "inf - inf";  // the two directions of an edge
  }

  int64_t choosable() const {
    int64_t count = 0;
    for (int64_t i = 0; i < size(); ++i) {
      count += allowed(i) && score(i) > -std::numeric_limits<double>::infinity();
    }
    return count;
  }

  const SolverInput& input_;
  Index index_;
  at::IntArrayRef instance_;
  at::Tensor scores_;
  at::Tensor mask_;
  int64_t k_ = input_.k;
};

}  // namespace

Check check_level(std::string_view op, int64_t check) {
  TORCH_CHECK_VALUE(0 <= check && check <= 2, "[aimle::", op,
                    "] expected check to be 0 (never), 1 (default) or 2 (all) but got ", check);
  return static_cast<Check>(check);
}

std::string describe_row(const SolverInput& input, int64_t row, Status status) {
  return BadRow(input, row).describe(status);
}

void raise_for_status(const SolverInput& input, const at::Tensor& status, Check check) {
  if (check == Check::kNever || (check == Check::kDefault && !status.is_cpu())) return;
  const at::Tensor host = status.cpu();
  const uint8_t* codes = host.const_data_ptr<uint8_t>();
  for (int64_t row = 0; row < host.numel(); ++row) {
    const auto code = static_cast<Status>(codes[row]);
    if (code == Status::kOk || (code == Status::kNaN && check == Check::kDefault)) continue;
    TORCH_CHECK_VALUE(false, describe_row(input, row, code));
  }
}

}  // namespace aimle::ops
