#include <mutex>
#include <utility>

#include "aimle/estimate/difference.h"
#include "aimle/estimate/passes.h"
#include "aimle/estimate/report_builder.h"
#include "aimle/estimate/row_block.h"
#include "aimle/estimate/thresholds.h"

namespace aimle {
namespace {

constexpr double kNoiseNs = 2.5;    // per entry
constexpr double kPerturbNs = 0.5;  // per entry

template <class T>
void unpack(const uint8_t* bits, int64_t n, T* z) {
  for (int64_t j = 0; j < n; ++j) z[j] = static_cast<T>((bits[j / 8] >> (j % 8)) & 1);
}

/// Keeps the failure to report, whichever thread finds it: the lowest row, of those without a NaN
/// if there are any, because a NaN may be allowed.
class FirstFailure {
 public:
  void add(int64_t row, Status status) {
    const auto order = [](const Failure& failure) {
      return std::pair(failure.status == Status::kNaN, failure.row);
    };
    const Failure found{.row = row, .status = status};
    std::lock_guard lock(mutex_);
    if (failure_.row < 0 || order(found) < order(failure_)) failure_ = found;
  }
  Failure get() const { return failure_; }

 private:
  std::mutex mutex_;
  Failure failure_;
};

}  // namespace

template <class T>
Failure forward(const PassSettings& settings, const Solver& solver, const Examples<T>& examples,
                const ForwardPass<T>& pass, const Executor& executor) {
  settings.validate();
  solver.validate();
  const int64_t n = examples.n, samples = settings.samples;
  const Signs sign = signs(settings.sense, solver.sense());
  const bool fixed_size = solver.solution_size().fixed;
  const bool mean = settings.output == Output::kMean;
  const bool own_z = mean || pass.store != nullptr;
  const RowKernels<T>& kernels = row_kernels<T>();
  const double noise_ns = settings.noise.kind == NoiseKind::kNone ? 0.0 : kNoiseNs;
  const double ns = static_cast<double>(samples) *
                    (solver.work_ns() + (noise_ns + kPerturbNs) * static_cast<double>(n));
  const bool rivals =
      pass.rivals != nullptr && pass.bits != nullptr && keeps_rivals(settings, solver);
  FirstFailure failure;
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    Block<T> block(settings, examples, (end - begin) * settings.samples);
    const auto size = static_cast<size_t>(block.capacity() * n);
    std::vector<T> x(size), z_block(own_z ? size : 0);
    std::vector<double> sum(mean ? static_cast<size_t>(n) : 0);
    for_each_block(block, settings, begin, end, [&](Block<T>& rows) {
      T* z = own_z ? z_block.data() : pass.z + rows.first() * n;
      rows.perturb(sign, x.data());
      if (!fixed_size) rows.center(sign, settings.theta_temperature, x.data());
      rows.solve(solver, x.data(), z);
      if (pass.bits != nullptr) {
        kernels.pack(z, rows.count(), n, pass.bits + rows.first() * bytes_per_row(n));
      }
      if (rivals) {
        keep_rivals(examples, samples, x.data(), pass.bits, rows.first(), rows.count(),
                    pass.rivals);
      }
      if (pass.store != nullptr) pass.store(z, rows.first() * n, rows.count() * n, pass.stored);
      for (int64_t i = 0; i < rows.count(); ++i) {
        const int64_t row = rows.first() + i;
        if (rows.status(i) != Status::kOk) failure.add(row, rows.status(i));
        if (!mean) continue;
        for (int64_t j = 0; j < n; ++j) sum[static_cast<size_t>(j)] += z[i * n + j];
        if (rows.sample(i) + 1 < samples) continue;
        T* out = pass.z + rows.example(i) * n;
        for (int64_t j = 0; j < n; ++j) {
          out[j] = static_cast<T>(sum[static_cast<size_t>(j)] / static_cast<double>(samples));
          sum[static_cast<size_t>(j)] = 0.0;
        }
      }
    });
  });
  return failure.get();
}

namespace {

template <class T>
BackwardReport difference_backward(const PassSettings& settings, const Solver& solver,
                                   const Examples<T>& examples, const BackwardPass<T>& pass,
                                   const Executor& executor) {
  solver.validate();
  const int64_t n = examples.n, samples = settings.samples;
  const Signs sign = signs(settings.sense, solver.sense());
  const bool central = settings.difference == Difference::kCentral;
  const bool kept = keeps_solution(settings) && pass.bits != nullptr;
  const GradientRows<T> dy = pass.rows(settings, n);
  const StepSizes<T> sizes(settings, solver.solution_size(), examples, dy, pass.alpha, executor);
  const int64_t gradients = sizes.rows_per_example();
  const double solves = kept ? 1.0 : 2.0;
  const double noise_ns = settings.noise.kind == NoiseKind::kNone ? 0.0 : kNoiseNs;
  const double ns =
      static_cast<double>(samples) *
      (solves * solver.work_ns() + (noise_ns + 4 * kPerturbNs) * static_cast<double>(n));

  ReportBuilder report(examples.count);
  FirstFailure failure;
  const bool fixed_size = solver.solution_size().fixed, has_costs = solver.has_costs();
  const auto solve = [&](Block<T>& rows, T* x, T* z, Clipping& seen) {
    if (!fixed_size) rows.center(sign, settings.target_temperature, x);
    rows.solve(solver, x, z);
    if (!has_costs) return;
    rows.count_clipped(x, seen);
    for (int64_t i = 0; i < rows.count(); ++i) {
      if (rows.status(i) == Status::kNegativeCost) failure.add(rows.first() + i, rows.status(i));
    }
  };
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    Block<T> block(settings, examples, (end - begin) * settings.samples);
    const auto size = static_cast<size_t>(block.capacity() * n);
    std::vector<T> x_left(size), x_right(size), z_left(size), z_right(size);
    std::vector<T> widened(static_cast<size_t>(n));
    // A block may contain the end of one example and the start of others.
    std::vector<ExampleStep> steps(static_cast<size_t>(block.capacity()) + 1);
    std::vector<StepRow<T>> step_rows(static_cast<size_t>(block.capacity()));
    DifferenceSum<T> sum(settings, examples);
    Clipping clipping;
    ExampleStep carried;
    NormWindow window;
    for_each_block(block, settings, begin, end, [&](Block<T>& rows) {
      const int64_t first_example = rows.example(0);
      auto step_of = [&](int64_t i) -> ExampleStep& {
        return steps[static_cast<size_t>(rows.example(i) - first_example)];
      };
      if (rows.sample(0) != 0) std::swap(steps[0], carried);
      bool at_once = central && dy.widen == nullptr;
      for (int64_t i = 0; i < rows.count(); ++i) {
        const int64_t b = rows.example(i), g = gradients == 1 ? 0 : rows.sample(i);
        ExampleStep& step = step_of(i);
        if (rows.sample(i) == 0) {
          sizes.compute(b, window, step);
          report.set_lambda(b, step.shared.reported);
        }
        at_once = at_once && step.all_free;
        step_rows[static_cast<size_t>(i)] = {.theta = examples.theta + b * n,
                                             .d = at_once ? dy.row(b, g, n, nullptr) : nullptr,
                                             .lambda = step.sample[static_cast<size_t>(g)]};
      }
      if (at_once) rows.step_both(sign, step_rows.data(), x_left.data(), x_right.data());
      for (int64_t i = 0; i < rows.count() && !at_once; ++i) {
        const int64_t b = rows.example(i), g = gradients == 1 ? 0 : rows.sample(i);
        const bool all_free = step_of(i).all_free;
        const T* d = dy.row(b, g, n, widened.data());
        const double lambda = step_rows[static_cast<size_t>(i)].lambda;
        if (!kept) {
          rows.step_row(i, sign, all_free, d, central ? lambda : 0.0, x_left.data() + i * n);
        } else {
          unpack(pass.bits + (rows.first() + i) * bytes_per_row(n), n, z_left.data() + i * n);
        }
        rows.step_row(i, sign, all_free, d, -lambda, x_right.data() + i * n);
      }
      if (!kept) solve(rows, x_left.data(), z_left.data(), clipping);
      solve(rows, x_right.data(), z_right.data(), clipping);
      for (int64_t i = 0; i < rows.count(); ++i) {
        ExampleStep& step = step_of(i);
        if (samples == 1) {
          sum.only(rows.example(i), step, z_left.data() + i * n, z_right.data() + i * n,
                   pass.dtheta + rows.example(i) * n);
          continue;
        }
        sum.add(step, rows.sample(i), z_left.data() + i * n, z_right.data() + i * n);
        if (rows.sample(i) + 1 == samples) {
          sum.finish(rows.example(i), step, pass.dtheta + rows.example(i) * n);
        }
      }
      const int64_t last = rows.count() - 1;
      if (rows.sample(last) + 1 < samples) std::swap(carried, step_of(last));
    });
    report.add(sum.changes());
    report.add(clipping);
  });
  BackwardReport result = report.build();
  result.failure = failure.get();
  return result;
}

}  // namespace

template <class T>
BackwardReport backward(const PassSettings& settings, const Solver& solver,
                        const Examples<T>& examples, const BackwardPass<T>& pass,
                        const Executor& executor) {
  settings.validate();
  if (settings.difference == Difference::kStraightThrough) {
    straight_through(settings, examples, pass.rows(settings, examples.n), pass.dtheta, executor);
    return ReportBuilder(0).build();
  }
  if (settings.difference == Difference::kThresholds) {
    return threshold_backward(settings, solver, examples, pass, executor);
  }
  return difference_backward(settings, solver, examples, pass, executor);
}

template Failure forward(const PassSettings&, const Solver&, const Examples<float>&,
                         const ForwardPass<float>&, const Executor&);
template Failure forward(const PassSettings&, const Solver&, const Examples<double>&,
                         const ForwardPass<double>&, const Executor&);
template BackwardReport backward(const PassSettings&, const Solver&, const Examples<float>&,
                                 const BackwardPass<float>&, const Executor&);
template BackwardReport backward(const PassSettings&, const Solver&, const Examples<double>&,
                                 const BackwardPass<double>&, const Executor&);

}  // namespace aimle
