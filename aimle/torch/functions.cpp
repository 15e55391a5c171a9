#include "aimle/torch/functions.h"

#include <ATen/ops/zeros.h>

#include <string>
#include <utility>
#include <vector>

#include "aimle/torch/layer/setting_names.h"
#include "aimle/torch/tensor/find_op.h"

namespace aimle {
namespace {

at::Tensor call(const std::string& op, torch::jit::Stack stack) {
  return ops::call_op("aimle::" + op, std::move(stack))[0].toTensor();
}

constexpr int64_t kDefaultCheck = 1;

/// Calls an op of solvers or exact distributions, whose last arguments are the same.
at::Tensor call(const std::string& op, torch::jit::Stack stack, const SolverSpec& solver,
                const RowLimits& rows) {
  torch::jit::push(stack, solver.text(), rows.mask, rows.row_data, kDefaultCheck);
  return call(op, std::move(stack));
}

}  // namespace

at::Tensor solve(const SolverSpec& solver, const at::Tensor& scores, const RowLimits& rows) {
  return call("solve", {scores}, solver, rows);
}

at::Tensor draw_key(const at::Tensor& like, const std::optional<at::Generator>& generator) {
  return call("draw_key", {like, generator, int64_t{0}});
}

at::Tensor draw_host_key(const at::Tensor& theta, const std::optional<at::Generator>& generator) {
  return call("draw_host_key", {theta, generator, int64_t{0}});
}

at::Tensor sample_noise(const NoiseSpec& noise, const at::Tensor& key, at::IntArrayRef batch,
                        int64_t samples, at::IntArrayRef instance) {
  if (noise.kind == NoiseKind::kNone) {
    std::vector<int64_t> sizes = batch.vec();
    sizes.push_back(samples);
    sizes.insert(sizes.end(), instance.begin(), instance.end());
    return at::zeros(sizes, key.options().dtype(at::kFloat));
  }
  torch::jit::Stack stack;
  torch::jit::push(stack, key, batch.vec(), samples, instance.vec());
  if (noise.kind == NoiseKind::kSumOfGamma) {
    torch::jit::push(stack, call("sum_of_gamma_table", {noise.k, noise.iterations, key.device()}));
  }
  return call(ops::word_of(noise.kind, ops::kNoises), std::move(stack));
}

at::Tensor log_partition(const SolverSpec& solver, const at::Tensor& scores,
                         const RowLimits& rows) {
  return call("log_partition", {scores}, solver, rows);
}

at::Tensor marginals(const SolverSpec& solver, const at::Tensor& scores, const RowLimits& rows) {
  return call("marginals", {scores}, solver, rows);
}

at::Tensor covariance(const SolverSpec& solver, const at::Tensor& scores, const at::Tensor& v,
                      const RowLimits& rows) {
  return call("covariance", {scores, v}, solver, rows);
}

at::Tensor exact_sample(const SolverSpec& solver, const at::Tensor& scores, const at::Tensor& key,
                        int64_t samples, const RowLimits& rows) {
  return call("exact_sample", {scores, key, samples}, solver, rows);
}

double structure_count(const SolverSpec& solver, at::IntArrayRef instance,
                       const std::optional<std::vector<int64_t>>& data) {
  return ops::call_op("aimle::structure_count", {solver.text(), instance.vec(), data})[0]
      .toDouble();
}

at::Tensor structures(const SolverSpec& solver, at::IntArrayRef instance,
                      std::optional<at::Device> device,
                      const std::optional<std::vector<int64_t>>& data) {
  return call("structures", {solver.text(), instance.vec(), data, device});
}

}  // namespace aimle
