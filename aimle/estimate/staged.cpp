#include "aimle/estimate/difference.h"
#include "aimle/estimate/passes.h"
#include "aimle/estimate/report_builder.h"
#include "aimle/estimate/row_block.h"

namespace aimle {

template <class T>
void perturb(const PassSettings& settings, Sense solver_sense, const Examples<T>& examples, T* x,
             const Executor& executor) {
  const Signs sign = signs(settings.sense, solver_sense);
  const double ns = 3.0 * static_cast<double>(settings.samples * examples.n);
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    Block<T> block(settings, examples, (end - begin) * settings.samples);
    for_each_block(block, settings, begin, end, [&](const Block<T>& rows) {
      T* out = x + rows.first() * examples.n;
      rows.perturb(sign, out);
      rows.center(sign, settings.theta_temperature, out);
    });
  });
}

template <class T>
void step(const PassSettings& settings, const CallableSolver& solver, const Examples<T>& examples,
          const T* dy, double alpha, T* x_left, T* x_right, double* lambda, uint8_t* counted,
          const Executor& executor) {
  const Signs sign = signs(settings.sense, solver.sense);
  const auto rows_of_dy = GradientRows<T>::packed(dy, gradient_rows(settings), examples.n);
  const StepSizes<T> sizes(settings, solver.size, examples, rows_of_dy, alpha, executor);
  const int64_t n = examples.n, gradients = sizes.rows_per_example();
  const bool central = settings.difference == Difference::kCentral;
  const double ns = 5.0 * static_cast<double>(settings.samples * n);
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    NormWindow window;
    ExampleStep step;
    for (int64_t b = begin; b < end; ++b) {
      sizes.compute(b, window, step);
      double* row = lambda + b * (gradients + 2);
      std::copy(step.sample.begin(), step.sample.end(), row);
      row[gradients] = step.shared.lambda;
      row[gradients + 1] = step.shared.reported;
      std::copy(step.counted.begin(), step.counted.end(), counted + b * gradients);
    }
    Block<T> block(settings, examples, (end - begin) * settings.samples);
    for_each_block(block, settings, begin, end, [&](Block<T>& rows) {
      for (int64_t i = 0; i < rows.count(); ++i) {
        const int64_t b = rows.example(i), g = gradients == 1 ? 0 : rows.sample(i);
        const double size = lambda[b * (gradients + 2) + g];
        const T* d = dy + (b * gradients + g) * n;
        const int64_t out = (rows.first() + i) * n;
        if (x_left != nullptr) rows.step_row(i, sign, false, d, central ? size : 0.0, x_left + out);
        rows.step_row(i, sign, false, d, -size, x_right + out);
      }
      const int64_t first = rows.first() * n;
      if (x_left != nullptr) rows.center(sign, settings.target_temperature, x_left + first);
      rows.center(sign, settings.target_temperature, x_right + first);
    });
  });
}

template <class T>
BackwardReport difference(const PassSettings& settings, const Examples<T>& examples,
                          const T* z_left, const T* z_right, const double* lambda,
                          const uint8_t* counted, T* dtheta, const Executor& executor) {
  const int64_t n = examples.n, samples = settings.samples;
  const int64_t gradients = gradient_rows(settings);
  ReportBuilder report(examples.count);
  const double ns = 1.0 * static_cast<double>(samples * n);
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    DifferenceSum<T> sum(settings, examples);
    ExampleStep step{.all_free = false};  // checks every entry
    for (int64_t b = begin; b < end; ++b) {
      const double* row = lambda + b * (gradients + 2);
      step.sample.assign(row, row + gradients);
      step.shared.lambda = row[gradients];
      step.shared.reported = row[gradients + 1];
      step.counted.assign(counted + b * gradients, counted + (b + 1) * gradients);
      report.set_lambda(b, step.shared.reported);
      for (int64_t s = 0; s < samples; ++s) {
        const int64_t at = (b * samples + s) * n;
        sum.add(step, s, z_left + at, z_right + at);
      }
      sum.finish(b, step, dtheta + b * n);
    }
    report.add(sum.changes());
  });
  return report.build();
}

template <class T>
void straight_through(const PassSettings& settings, const Examples<T>& examples,
                      const GradientRows<T>& dy, T* dtheta, const Executor& executor) {
  const int64_t n = examples.n, gradients = gradient_rows(settings);
  const double sign = settings.sense == Sense::kMin ? -1.0 : 1.0;
  const double ns = 1.0 * static_cast<double>(gradients * n);
  parallel_for(executor, examples.count, ns, [&](int64_t begin, int64_t end) {
    std::vector<double> sum(static_cast<size_t>(n));
    std::vector<T> widened(static_cast<size_t>(n));
    for (int64_t b = begin; b < end; ++b) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (int64_t s = 0; s < gradients; ++s) {
        const T* d = dy.row(b, s, n, widened.data());
        for (int64_t j = 0; j < n; ++j) sum[static_cast<size_t>(j)] += static_cast<double>(d[j]);
      }
      for (int64_t j = 0; j < n; ++j) {
        const double total = sign * sum[static_cast<size_t>(j)];
        dtheta[b * n + j] = is_free(examples, b, j) ? static_cast<T>(total) : T(0);
      }
    }
  });
}

#define AIMLE_INSTANTIATE_STAGES(T)                                                               \
  template void perturb(const PassSettings&, Sense, const Examples<T>&, T*, const Executor&);     \
  template void step(const PassSettings&, const CallableSolver&, const Examples<T>&, const T*,    \
                     double, T*, T*, double*, uint8_t*, const Executor&);                         \
  template BackwardReport difference(const PassSettings&, const Examples<T>&, const T*, const T*, \
                                     const double*, const uint8_t*, T*, const Executor&);         \
  template void straight_through(const PassSettings&, const Examples<T>&, const GradientRows<T>&, \
                                 T*, const Executor&);

AIMLE_INSTANTIATE_STAGES(float)
AIMLE_INSTANTIATE_STAGES(double)

}  // namespace aimle
