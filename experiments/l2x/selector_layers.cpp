#include "experiments/l2x/selector_layers.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "experiments/engine/on_device.h"
#include "experiments/engine/randomness.h"
#include "experiments/l2x/selector_kernel.h"

namespace aimle::experiments::l2x {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

WordSizes sizes_of(const at::Tensor& x) {
  return {.reviews = x.size(0), .words = x.size(1), .columns = x.size(2)};
}

const bool* data_of(const at::Tensor& mask) {
  return mask.defined() ? mask.const_data_ptr<bool>() : nullptr;
}

struct Seeing : torch::autograd::Function<Seeing> {
  static variable_list forward(AutogradContext* ctx, const at::Tensor& x,
                               const std::optional<at::Tensor>& given_mask, bool with_highest) {
    const ops::DeviceContext context(x);
    const WordSizes sizes = sizes_of(x);
    const at::Tensor mask = given_mask ? given_mask->contiguous() : at::Tensor();
    const at::Tensor seen = at::empty({sizes.rows, 3 * sizes.columns}, x.options());
    see_neighbours_on_device(sizes, x.const_data_ptr<float>(), data_of(mask),
                             seen.mutable_data_ptr<float>(), context.get().stream);
    ctx->saved_data["sizes"] = x.sizes().vec();
    if (!with_highest) {
      ctx->save_for_backward({mask});
      return {seen};
    }
    const at::Tensor highest = at::empty({sizes.reviews, sizes.columns}, x.options());
    const at::Tensor place = at::empty_like(highest, at::kLong);
    highest_on_device(sizes, x.const_data_ptr<float>(), data_of(mask),
                      highest.mutable_data_ptr<float>(), place.mutable_data_ptr<int64_t>(),
                      context.get().stream);
    ctx->save_for_backward({mask, place});
    return {seen, highest};
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const variable_list saved = ctx->get_saved_variables();
    const at::Tensor seen = gradients[0].contiguous();
    const ops::DeviceContext context(seen);
    const at::Tensor dx = at::empty(ctx->saved_data["sizes"].toIntVector(), seen.options());
    WordGradients given = {.seen = seen.const_data_ptr<float>()};
    at::Tensor highest;
    if (saved.size() > 1) {
      highest = gradients[1].contiguous();
      given.highest = highest.const_data_ptr<float>();
      given.place = saved[1].const_data_ptr<int64_t>();
    }
    word_gradients_on_device(sizes_of(dx), given, data_of(saved[0]), dx.mutable_data_ptr<float>(),
                             context.get().stream);
    return {dx, {}, {}};
  }
};

struct Join : torch::autograd::Function<Join> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& global, const at::Tensor& local,
                            double share, const std::optional<at::Tensor>& given_key) {
    const ops::DeviceContext context(local);
    const WordSizes sizes = sizes_of(local);
    const at::Tensor joined = at::empty({sizes.rows, 2 * sizes.columns}, local.options());
    at::Tensor kept, key;
    Dropout dropout = {.scale = static_cast<float>(1 / (1 - share))};
    if (given_key) {
      kept = at::empty_like(joined, at::kBool);
      key = given_key->contiguous();
      dropout.key = ops::device_key(key);
      dropout.bound = static_cast<float>(dropout_bound(share));
    }
    join_on_device(sizes, global.const_data_ptr<float>(), local.const_data_ptr<float>(), dropout,
                   joined.mutable_data_ptr<float>(),
                   kept.defined() ? kept.mutable_data_ptr<bool>() : nullptr, context.get().stream);
    ctx->save_for_backward({kept});
    ctx->saved_data["sizes"] = local.sizes().vec();
    ctx->saved_data["scale"] = static_cast<double>(dropout.scale);
    return joined;
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& gradients) {
    const at::Tensor kept = ctx->get_saved_variables()[0], given = gradients[0].contiguous();
    const ops::DeviceContext context(given);
    const at::Tensor local = at::empty(ctx->saved_data["sizes"].toIntVector(), given.options());
    const at::Tensor global = at::empty({local.size(0), local.size(2)}, given.options());
    join_gradients_on_device(sizes_of(local), given.const_data_ptr<float>(), data_of(kept),
                             static_cast<float>(ctx->saved_data["scale"].toDouble()),
                             global.mutable_data_ptr<float>(), local.mutable_data_ptr<float>(),
                             context.get().stream);
    return {global, local, {}, {}};
  }
};

}  // namespace

bool suits_selector_kernels(const at::Tensor& x, int64_t hidden) {
  return has_selector_kernels() && suit_kernels({x}) && hidden % 4 == 0;
}

at::Tensor see_neighbours(const at::Tensor& x, const std::optional<at::Tensor>& mask) {
  return Seeing::apply(x, mask, false)[0];
}

SeenWords see_words(const at::Tensor& x, const std::optional<at::Tensor>& mask) {
  const variable_list seen = Seeing::apply(x, mask, true);
  return {.neighbours = seen[0], .highest = seen[1]};
}

at::Tensor join(const at::Tensor& global, const at::Tensor& local, double share,
                const std::optional<at::Tensor>& key) {
  return Join::apply(global, local, share, key);
}

}  // namespace aimle::experiments::l2x
