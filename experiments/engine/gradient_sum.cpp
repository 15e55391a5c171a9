#include "experiments/engine/gradient_sum.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/csrc/autograd/variable.h>

#include <functional>
#include <numeric>

#include "experiments/engine/processes.h"

namespace aimle::experiments {
namespace {

/// Of another type in torch 2.13 than before.
using NodePointer = decltype(torch::autograd::impl::grad_accumulator(at::Tensor()));

struct Bucket {
  std::vector<at::Tensor> parameters;
  std::vector<at::Tensor> places;  // of their gradients, in `all`
  at::Tensor all;
  size_t missing = 0;                    // gradients that backward has yet to bring
  std::function<void()> wait = nullptr;  // for the sum; null before it has begun

  bool takes(const at::Tensor& parameter, int64_t bytes) const {
    if (parameters.empty()) return true;
    const at::Tensor& first = parameters.front();
    int64_t held = parameter.nbytes();
    for (const at::Tensor& other : parameters) held += static_cast<int64_t>(other.nbytes());
    return held <= bytes && first.scalar_type() == parameter.scalar_type();
  }

  void lay_out() {
    int64_t entries = 0;
    for (const at::Tensor& parameter : parameters) entries += parameter.numel();
    all = at::zeros({entries}, parameters.front().options().requires_grad(false));
    int64_t begin = 0;
    for (const at::Tensor& parameter : parameters) {
      places.push_back(all.narrow(0, begin, parameter.numel()).view(parameter.sizes()));
      begin += parameter.numel();
    }
    missing = parameters.size();
  }
};

}  // namespace

class GradientSum::Buckets {
 public:
  Buckets(const std::vector<at::Tensor>& parameters, int64_t bytes) {
    for (const at::Tensor& parameter : parameters) {
      if (buckets_.empty() || !buckets_.back().takes(parameter, bytes)) buckets_.emplace_back();
      buckets_.back().parameters.push_back(parameter);
    }
    for (Bucket& bucket : buckets_) bucket.lay_out();
  }

  /// Backward calls `arrived` for every gradient, for as long as this lives.
  static void watch(const std::shared_ptr<Buckets>& self) {
    for (size_t b = 0; b < self->buckets_.size(); ++b) {
      const Bucket& bucket = self->buckets_[b];
      for (size_t i = 0; i < bucket.parameters.size(); ++i) {
        auto node = torch::autograd::impl::grad_accumulator(bucket.parameters[i]);
        node->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
            [weak = std::weak_ptr(self), b, i](const torch::autograd::variable_list& outputs,
                                               const torch::autograd::variable_list&) {
              if (const auto alive = weak.lock()) alive->arrived(b, i);
              return outputs;
            }));
        self->nodes_.push_back(std::move(node));
      }
    }
  }

  void finish() {
    const at::NoGradGuard no_grad;
    for (size_t b = 0; b < buckets_.size(); ++b) {  // those that lack a gradient
      if (buckets_[b].missing > 0) completed_.push_back(static_cast<int64_t>(b));
    }
    if (order_.empty()) agree_on_order();
    while (begun_ < order_.size()) begin_next();
    for (Bucket& bucket : buckets_) {
      bucket.wait();
      for (size_t i = 0; i < bucket.parameters.size(); ++i) {
        at::Tensor& gradient = bucket.parameters[i].mutable_grad();
        if (gradient.defined()) gradient = bucket.places[i];
      }
      bucket.wait = nullptr;
      bucket.missing = bucket.parameters.size();
    }
    completed_.clear();
    begun_ = 0;
  }

 private:
  void arrived(size_t b, size_t i) {
    const at::NoGradGuard no_grad;
    Bucket& bucket = buckets_[b];
    bucket.places[i].copy_(bucket.parameters[i].grad());
    if (--bucket.missing > 0) return;
    completed_.push_back(static_cast<int64_t>(b));
    while (begun_ < order_.size() && buckets_[order_[begun_]].missing == 0) begin_next();
  }

  void begin_next() {
    Bucket& bucket = buckets_[order_[begun_++]];
    if (bucket.missing > 0) clear_absent(bucket);
    bucket.wait = begin_sum(bucket.all);
  }

  static void clear_absent(Bucket& bucket) {
    for (size_t i = 0; i < bucket.parameters.size(); ++i) {
      if (!bucket.parameters[i].grad().defined()) bucket.places[i].zero_();
    }
  }

  void agree_on_order() {
    at::Tensor order = at::tensor(completed_, at::kLong);
    take_from_first(order);
    const auto* places = order.const_data_ptr<int64_t>();
    order_.assign(places, places + order.numel());
  }

  std::vector<Bucket> buckets_;
  std::vector<NodePointer> nodes_;  // their hooks live as long as they
  std::vector<int64_t> completed_;  // in this backward pass
  std::vector<size_t> order_;       // of sums; empty in the first pass
  size_t begun_ = 0;
};

GradientSum::GradientSum(const std::vector<at::Tensor>& parameters, int64_t bucket_bytes) {
  if (!processes().several()) return;
  buckets_ = std::make_shared<Buckets>(parameters, bucket_bytes);
  Buckets::watch(buckets_);
}

GradientSum::~GradientSum() = default;

void GradientSum::finish() {
  if (buckets_) buckets_->finish();
}

}  // namespace aimle::experiments
