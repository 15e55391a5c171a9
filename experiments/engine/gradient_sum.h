// Gradients summed over the processes that share a batch, while backward goes on.
//
// Parameters lie in buckets of about a megabyte, in the order of their names. As soon as backward has
// the gradients of a bucket its sum begins, in an order of buckets that is the same for all
// processes: the order in which the first process's first backward pass completed them. What a sum
// is does not depend on that order, so a run continues with the same bits.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace aimle::experiments {

class GradientSum {
 public:
  static constexpr int64_t kBucketBytes = 1 << 20;

  /// For one process it does nothing.
  explicit GradientSum(const std::vector<at::Tensor>& parameters,
                       int64_t bucket_bytes = kBucketBytes);
  ~GradientSum();
  GradientSum(const GradientSum&) = delete;
  GradientSum& operator=(const GradientSum&) = delete;

  /// After backward: every parameter with a gradient has the sum, which lives until the next
  /// backward pass.
  void finish();

 private:
  class Buckets;
  std::shared_ptr<Buckets> buckets_;  // null for one process
};

}  // namespace aimle::experiments
