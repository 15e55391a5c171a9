// Exact distributions: log-partition, marginals and covariance, checked against the CPU, then
// timed.
#include "aimle/cuda/exact.h"
#include "aimle/registry/library_solvers.h"

#include <cmath>

#include "benchmarks/cuda/harness.cuh"

namespace aimle::bench {
namespace {

void require_near(const std::string& what, const std::vector<double>& found,
                  const std::vector<double>& expected) {
  for (size_t i = 0; i < found.size(); ++i) {
    const bool near =
        (std::isnan(found[i]) && std::isnan(expected[i])) ||
        std::abs(found[i] - expected[i]) <= 1e-9 * std::max(1.0, std::abs(expected[i]));
    if (near) continue;
    std::fprintf(stderr, "%s: entry %zu is %.17g, on the CPU %.17g\n", what.c_str(), i, found[i],
                 expected[i]);
    std::exit(1);
  }
}

template <class S>
void run(const S& solver, const std::string& name, int64_t count, double scale, bool timed) {
  const auto size = static_cast<size_t>(count * solver.size()), rows = static_cast<size_t>(count);
  std::vector<double> scores = draw_scores<double>(size, false, 5);
  const std::vector<double> v = draw_scores<double>(size, false, 6);
  for (double& x : scores) x = scale * (x - 0.5);
  std::vector<double> log_partition(rows), marginals(size), covariance(size);
  std::vector<Status> status(rows);
  const auto on_cpu = [&] {
    evaluate(solver,
             DistributionRows<double>{.count = count,
                                      .scores = scores.data(),
                                      .v = v.data(),
                                      .status = status.data(),
                                      .log_partition = log_partition.data(),
                                      .marginals = marginals.data(),
                                      .covariance = covariance.data()},
             thread_pool());
  };
  on_cpu();

  DeviceArray<double> device_scores(scores), device_v(v), a(rows), mu(size), product(size);
  DeviceArray<Status> device_status(rows);
  Scratch scratch;
  const auto on_gpu = [&](double* log_partition, double* marginals, double* covariance) {
    scratch.rewind();
    cuda::evaluate_rows(solver,
                        DistributionRows<double>{.count = count,
                                                 .scores = device_scores.data(),
                                                 .v = device_v.data(),
                                                 .status = device_status.data(),
                                                 .log_partition = log_partition,
                                                 .marginals = marginals,
                                                 .covariance = covariance},
                        scratch.context());
  };
  on_gpu(a.data(), mu.data(), product.data());
  check(cudaDeviceSynchronize());
  require_near(name + " log-partition", a.to_host(), log_partition);
  require_near(name + " marginals", mu.to_host(), marginals);
  require_near(name + " covariance", product.to_host(), covariance);
  on_gpu(a.data(), nullptr, nullptr);
  require_near(name + " log-partition alone", a.to_host(), log_partition);
  on_gpu(nullptr, mu.data(), nullptr);
  require_near(name + " marginals alone", mu.to_host(), marginals);
  if (!timed) return;
  const std::string what = std::to_string(count) + " rows, " + name;
  print_row(what + ", all three, CPU", host_microseconds(on_cpu), count);
  print_row("  log-partition", microseconds([&] { on_gpu(a.data(), nullptr, nullptr); }), count);
  print_row("  marginals", microseconds([&] { on_gpu(nullptr, mu.data(), nullptr); }), count);
  print_row("  covariance", microseconds([&] { on_gpu(nullptr, nullptr, product.data()); }), count);
}

/// One sample per row; a few may differ, if a uniform number falls between two roundings.
template <class S>
void run_samples(const S& solver, const std::string& name, int64_t count, double scale,
                 bool timed) {
  const auto size = static_cast<size_t>(count * solver.size()), rows = static_cast<size_t>(count);
  std::vector<double> scores = draw_scores<double>(size, false, 5);
  for (double& x : scores) x = scale * (x - 0.5);
  const Key key{.seed = 1, .stream = 2};
  std::vector<double> z(size);
  std::vector<Status> status(rows);
  const auto on_cpu = [&] {
    sample(solver,
           SampleRows<double>{.count = count,
                              .samples = 1,
                              .scores = scores.data(),
                              .key = key,
                              .status = status.data(),
                              .z = z.data()},
           thread_pool());
  };
  on_cpu();

  DeviceArray<double> device_scores(scores), device_z(size);
  DeviceArray<Status> device_status(rows);
  Scratch scratch;
  const auto on_gpu = [&] {
    scratch.rewind();
    cuda::sample_rows(solver,
                      SampleRows<double>{.count = count,
                                         .samples = 1,
                                         .scores = device_scores.data(),
                                         .status = device_status.data(),
                                         .z = device_z.data()},
                      {.value = key}, scratch.context());
  };
  on_gpu();
  check(cudaDeviceSynchronize());
  const std::vector<double> drawn = device_z.to_host();
  int64_t different = 0;
  for (size_t row = 0; row < rows; ++row) {
    const auto first = static_cast<ptrdiff_t>(row * size / rows);
    const auto last = static_cast<ptrdiff_t>((row + 1) * size / rows);
    different += !std::equal(z.begin() + first, z.begin() + last, drawn.begin() + first);
  }
  if (different > 1) {
    std::fprintf(stderr, "%s: %ld of %ld samples differ\n", name.c_str(), different, count);
    std::exit(1);
  }
  if (!timed) return;
  print_row(std::to_string(count) + " samples, " + name + ", CPU", host_microseconds(on_cpu),
            count);
  print_row("  samples", microseconds(on_gpu), count);
}

}  // namespace
}  // namespace aimle::bench

int main(int argc, char**) {
  using namespace aimle;
  if (argc > 1) {
    bench::run(Argmax{.n = 33}, "argmax", 10, 5, false);
    bench::run(TopK{.n = 20, .k = 7}, "topk", 10, 5, false);
    bench::run(SpanningTree{.vertices = 10}, "tree", 10, 5, false);
    bench::run(SpanningTree{.vertices = 20}, "tree", 5, 500, false);
    bench::run_samples(SpanningTree{.vertices = 20}, "tree", 5, 30, false);
    return 0;
  }
  for (const double scale : {1.0, 30.0, 500.0}) {
    bench::run(Argmax{.n = 33}, "argmax", 100, scale, false);
    for (const int64_t k : {0, 1, 7, 20})
      bench::run(TopK{.n = 20, .k = k}, "topk", 100, scale, false);
    bench::run(TopK{.n = 300, .k = 100}, "topk", 4, scale, false);
    for (const int64_t n : {1, 2, 3, 4, 5, 10, 17, 33}) {
      bench::run(SpanningTree{.vertices = n}, "tree", 50, scale, false);
      bench::run(SpanningTree{.vertices = n, .layout = SpanningTree::Layout::kDirected}, "tree", 50,
                 scale, false);
    }
  }
  bench::run(TopK{.n = 20, .k = 10}, "10 of 20", 2000, 5, true);
  bench::run(TopK{.n = 350, .k = 10}, "10 of 350", 40, 5, true);
  bench::run(SpanningTree{.vertices = 10}, "trees of 10", 128, 5, true);
  bench::run(SpanningTree{.vertices = 30}, "trees of 30", 128, 5, true);
  for (const double scale : {1.0, 30.0, 500.0}) {
    for (const int64_t n : {1, 2, 3, 4, 5, 10, 17, 33}) {
      bench::run_samples(SpanningTree{.vertices = n}, "tree", 50, scale, false);
    }
  }
  bench::run_samples(TopK{.n = 20, .k = 10}, "10 of 20", 2000, 5, true);
  bench::run_samples(SpanningTree{.vertices = 10}, "trees of 10, by walks", 128, 2, true);
  bench::run_samples(SpanningTree{.vertices = 10}, "trees of 10, by edges", 128, 5, true);
  bench::run_samples(SpanningTree{.vertices = 30}, "trees of 30, by edges", 128, 5, true);
  return 0;
}
