#include "aimle/cuda/update_state.cuh"

#include "aimle/cuda/launch.cuh"

namespace aimle::cuda {
namespace {

constexpr int kThreads = 512;
constexpr int64_t kBlocks = 132;

__global__ void __launch_bounds__(kThreads)
    update_state_kernel(const __grid_constant__ UpdateTask task) {
  constexpr int kWarps = kThreads / 32;
  // Before the step sizes, so that both are in flight at once.
  const Changes share = gridDim.x == 1 ? share_of_changes<kThreads>(task) : Changes{};
  sum_lambda_chunks(task, static_cast<int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32,
                    static_cast<int64_t>(gridDim.x) * kWarps);
  if (gridDim.x == 1) {
    __syncthreads();
    update_state_in_block<kThreads>(task, share);
  } else if (is_last_block(task.seen.done)) {
    update_state_in_block<kThreads>(task, share_of_changes<kThreads>(task));
  }
}

__global__ void apply_counts_kernel(AdaptiveTarget target, int64_t samples, const double* counts,
                                    DeviceState state) {
  if (threadIdx.x != 0) return;
  ControllerState controller = read_controller(state);
  if (update_from_counts(target, samples, counts, controller, state.stats)) {
    write_controller(controller, state);
  }
  for (int i = 0; i < kWaitingCounts; ++i) state.waiting[i] = 0.0;
}

}  // namespace

void apply_counts(const PassSettings& settings, const double* counts, const DeviceState& state,
                  const Context& context) {
  launch("apply_counts", apply_counts_kernel, 1, 32, 0, context,
         std::get<AdaptiveTarget>(settings.target), settings.samples, counts, state);
}

void update_state(const PassSettings& settings, const DeviceReport& seen, const DeviceState& state,
                  void* room, const Context& context) {
  if (!update_task(settings, seen, state, nullptr).wanted) return;
  if (room == nullptr) room = context.allocate(update_bytes(seen.examples));
  const UpdateTask task = update_task(settings, seen, state, room);
  const unsigned blocks =
      seen.done == nullptr ? 1 : blocks_for(task.chunks, 2 * kThreads / 32, kBlocks);
  launch("update_state", update_state_kernel, blocks, kThreads, 0, context, task);
}

}  // namespace aimle::cuda
