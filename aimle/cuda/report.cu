#include "aimle/cuda/report.cuh"

#include "aimle/cuda/launch.cuh"

namespace aimle::cuda {
namespace {

constexpr int kThreads = 1024;

__global__ void __launch_bounds__(kThreads) report_kernel(const __grid_constant__ ReportTask task) {
  sum_lambda_chunks(task, threadIdx.x / 32, kThreads / 32);
  __syncthreads();
  make_report<kThreads>(task);
}

}  // namespace

void report(const EstimatorSettings& settings, const DeviceReport& seen, const DeviceState& state,
            const Context& context) {
  if (!report_task(settings, seen, state, nullptr).wanted) return;
  const ReportTask task =
      report_task(settings, seen, state, context.allocate(report_bytes(seen.examples)));
  launch("report", report_kernel, 1, kThreads, 0, context, task);
}

}  // namespace aimle::cuda
