// Random calls of an estimator, and three ways to make them: fused, staged, and plainly, one row at
// a time by a literal implementation. All three must give the same bits.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <valarray>
#include <vector>

#include "aimle/estimate/passes.h"
#include "aimle/noise/sum_of_gamma.h"
#include "aimle/registry/library_solvers.h"
#include "tests/draws.h"

namespace aimle::cases {

using draws::one_in;
using draws::Rng;
using draws::uniform;

inline double normal(Rng& rng) { return std::normal_distribution<double>()(rng); }

inline constexpr NoiseKind kNoises[] = {NoiseKind::kNone, NoiseKind::kGumbel, NoiseKind::kNormal,
                                        NoiseKind::kLogistic, NoiseKind::kSumOfGamma};

/// A setting of the noise, with its table and standard deviation.
inline void use_noise(NoiseKind kind, PassSettings& settings) {
  constexpr SumOfGamma kGamma{.k = 5};
  settings.noise = {.kind = kind};
  if (kind == NoiseKind::kSumOfGamma) settings.noise.table = quantile_table(kGamma)->data();
  settings.noise_stddev = moments(kind, kGamma.k, kGamma.iterations).stddev;
}

inline int64_t size_of(const Solver& solver) { return solver.size(); }

inline Sense sense_of(const Solver& solver) { return solver.sense(); }

/// Solver number `which` of kSolverCount, of about `size` entries.
inline constexpr int kSolverCount = 6;
inline Solver draw_solver(int which, int64_t size, Rng& rng) {
  const auto root = static_cast<int64_t>(std::sqrt(static_cast<double>(size)));
  switch (which) {
    case 0:
      return Argmax{.n = size};
    case 1:
      return TopK{.n = size, .k = uniform(rng, 0, size)};
    case 2:
      return SpanningTree{.vertices = std::max<int64_t>(2, root)};
    case 3:
      return SpanningTree{.vertices = std::max<int64_t>(2, root),
                          .layout = SpanningTree::Layout::kDirected};
    case 4:
      return GridPath{.height = root, .width = std::max<int64_t>(1, size / root)};
    default:
      return GridPath{
          .height = std::max<int64_t>(1, size / root), .width = root, .neighbourhood = 4};
  }
}

template <class T>
struct Case {
  PassSettings settings;
  Solver solver = Argmax{};
  int64_t count = 0;
  double alpha = 0.5;
  Key key{.seed = 20230207, .stream = 3};
  std::vector<T> theta;      // [count, n]
  std::vector<T> dy;         // [count, rows(), n]
  std::valarray<bool> mask;  // [count, n] or empty
  std::vector<int64_t> k;    // [count] or empty

  int64_t n() const { return size_of(solver); }
  int64_t samples() const { return settings.samples; }
  /// Rows of dy per example.
  int64_t rows() const { return settings.output == Output::kMean ? 1 : settings.samples; }
  bool adapts() const { return std::holds_alternative<AdaptiveTarget>(settings.target); }

  Examples<T> examples() const {
    return {.count = count,
            .n = n(),
            .theta = theta.data(),
            .mask = mask.size() != 0 ? &mask[0] : nullptr,
            .k = k.empty() ? nullptr : k.data(),
            .key = key};
  }

  void draw_theta(Rng& rng, int64_t first = 0, int64_t last = -1) {
    theta.resize(static_cast<size_t>(count * n()));
    for (int64_t b = first; b < (last < 0 ? count : last); ++b) {
      const bool ties = one_in(rng, 4), zero = one_in(rng, 16), holes = one_in(rng, 8);
      for (int64_t j = 0; j < n(); ++j) {
        double x = zero ? 0.0 : normal(rng);
        if (ties) x = std::round(4 * x) / 4;
        // Choices left out by the scores themselves, not by a mask.
        if (holes && one_in(rng, 8)) x = settings.sense == Sense::kMin ? HUGE_VAL : -HUGE_VAL;
        theta[static_cast<size_t>(b * n() + j)] = static_cast<T>(x);
      }
    }
  }

  void draw_dy(Rng& rng, int64_t first = 0, int64_t last = -1) {
    dy.resize(static_cast<size_t>(count * rows() * n()));
    for (int64_t b = first; b < (last < 0 ? count : last); ++b) {
      for (int64_t s = 0; s < rows(); ++s) {
        const double scale = one_in(rng, 10) ? 0.0 : one_in(rng, 10) ? 1e-9 : 1.0;
        T* row = dy.data() + (b * rows() + s) * n();
        for (int64_t j = 0; j < n(); ++j) row[j] = static_cast<T>(scale * normal(rng));
        if (one_in(rng, 40)) row[uniform(rng, 0, n() - 1)] = std::numeric_limits<T>::quiet_NaN();
        if (one_in(rng, 40)) row[uniform(rng, 0, n() - 1)] = std::numeric_limits<T>::infinity();
      }
    }
  }

  void draw_mask(Rng& rng) {
    mask.resize(static_cast<size_t>(count * n()));
    for (bool& allowed : mask) allowed = !one_in(rng, 5);
  }

  void draw_k(Rng& rng) {
    k.resize(static_cast<size_t>(count));
    for (int64_t& own : k) own = uniform(rng, 0, n());
  }

  std::string text() const {
    std::ostringstream out;
    const auto& s = settings;
    out << solver.name() << " n=" << n() << " B=" << count << " S=" << s.samples
        << " noise=" << name(s.noise.kind) << " difference=" << static_cast<int>(s.difference)
        << " output=" << static_cast<int>(s.output) << " sense=" << static_cast<int>(s.sense)
        << " temperatures=" << s.theta_temperature << "," << s.target_temperature
        << " mask=" << (mask.size() != 0) << " k=" << !k.empty() << " alpha=" << alpha
        << " bytes=" << sizeof(T);
    if (const auto* adaptive = std::get_if<AdaptiveTarget>(&s.target)) {
      out << " scope=" << static_cast<int>(adaptive->scope)
          << " scale=" << static_cast<int>(adaptive->scale) << " reference=" << adaptive->reference;
    } else {
      out << " lambda=" << std::get<FixedTarget>(s.target).lambda;
    }
    return out.str();
  }
};

/// Anything goes: a solver, a noise, a target and modes at random.
template <class T>
Case<T> draw_case(Rng& rng, int64_t max_count, int64_t max_samples, int64_t max_size) {
  Case<T> result;
  PassSettings& settings = result.settings;
  result.solver =
      draw_solver(static_cast<int>(rng() % kSolverCount), uniform(rng, 1, max_size), rng);
  result.count = uniform(rng, 1, max_count);
  settings.samples = uniform(rng, 1, max_samples);
  use_noise(kNoises[rng() % 5], settings);
  settings.theta_temperature = one_in(rng, 4) ? 0.5 : one_in(rng, 8) ? 0.0 : 1.0;
  settings.target_temperature = one_in(rng, 4) ? 0.75 : settings.theta_temperature;
  settings.sense = one_in(rng, 2) ? Sense::kMin : Sense::kMax;
  settings.output = one_in(rng, 3) ? Output::kMean : Output::kSamples;
  settings.difference = static_cast<Difference>(rng() % 3);
  if (one_in(rng, 3)) {
    settings.target = FixedTarget{.lambda = one_in(rng, 8) ? 0.0 : 1.5};
  } else {
    using Scale = AdaptiveTarget::Scale;
    const bool noisy = settings.noise_stddev > 0 && one_in(rng, 2);
    const Scale own = one_in(rng, 2) ? Scale::kAuto : Scale::kTheta;
    settings.target = AdaptiveTarget{.scope = static_cast<AdaptiveTarget::Scope>(rng() % 3),
                                     .scale = noisy ? Scale::kNoise : own,
                                     .reference = one_in(rng, 6)};
  }
  result.alpha = one_in(rng, 8) ? 0.0 : 0.25 * static_cast<double>(uniform(rng, 1, 12));
  result.key = {.seed = rng(), .stream = rng()};
  result.draw_theta(rng);
  result.draw_dy(rng);
  if (one_in(rng, 3)) result.draw_mask(rng);
  if (result.solver.template is<TopK>() && one_in(rng, 2)) result.draw_k(rng);
  return result;
}

// ---- Outcomes -----------------------------------------------------------------------------------

template <class T>
struct Outcome {
  std::vector<T> z;
  std::vector<T> dtheta;
  BackwardReport report;
};

/// The same bits; one NaN is as good as another.
template <class T>
bool same(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b && std::signbit(a) == std::signbit(b);
}

template <class T>
void expect_same(const std::vector<T>& got, const std::vector<T>& expected, const char* what,
                 const std::string& text) {
  ASSERT_EQ(got.size(), expected.size()) << what << ": " << text;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(same(got[i], expected[i]))
        << what << "[" << i << "] = " << got[i] << ", expected " << expected[i] << ": " << text;
  }
}

template <class T>
void expect_same(const Outcome<T>& got, const Outcome<T>& expected, const std::string& text) {
  expect_same(got.z, expected.z, "z", text);
  expect_same(got.dtheta, expected.dtheta, "dtheta", text);
  const BackwardReport &a = got.report, &b = expected.report;
  EXPECT_EQ(a.changes.nonzeros, b.changes.nonzeros) << text;
  EXPECT_EQ(a.changes.samples, b.changes.samples) << text;
  EXPECT_EQ(a.changes.changed, b.changes.changed) << text;
  EXPECT_EQ(a.changes.zeros, b.changes.zeros) << text;
  EXPECT_EQ(a.changes.entries, b.changes.entries) << text;
  EXPECT_TRUE(same(a.lambda_mean, b.lambda_mean)) << text;
  EXPECT_TRUE(same(a.lambda_min, b.lambda_min)) << text;
  EXPECT_TRUE(same(a.lambda_max, b.lambda_max)) << text;
}

template <class T>
Outcome<T> run_fused(const Case<T>& call, const Executor& executor = sequential()) {
  const int64_t n = call.n();
  Outcome<T> result;
  result.z.resize(static_cast<size_t>(call.count * call.rows() * n));
  result.dtheta.resize(static_cast<size_t>(call.count * n));
  std::vector<uint8_t> bits;
  if (keeps_solution(call.settings)) {
    bits.resize(static_cast<size_t>(call.count * call.samples() * bytes_per_row(n)));
  }
  uint8_t* kept = bits.empty() ? nullptr : bits.data();
  const Examples<T> examples = call.examples();
  forward(call.settings, call.solver, examples, ForwardPass<T>{.z = result.z.data(), .bits = kept},
          executor);
  result.report = backward(
      call.settings, call.solver, examples,
      BackwardPass<T>{
          .dy = call.dy.data(), .bits = kept, .alpha = call.alpha, .dtheta = result.dtheta.data()},
      executor);
  return result;
}

/// z of scores [B, S, n], each example's mask and k serving all its samples.
template <class T>
std::vector<T> solve_all(const Case<T>& call, const std::vector<T>& x, const Executor& executor) {
  const int64_t n = call.n(), samples = call.samples(), rows = call.count * samples;
  std::valarray<bool> mask(call.mask.size() * static_cast<size_t>(samples));
  for (size_t i = 0; i < mask.size(); ++i) {
    const auto row = static_cast<int64_t>(i) / n, j = static_cast<int64_t>(i) % n;
    mask[i] = call.mask[static_cast<size_t>(row / samples * n + j)];
  }
  std::vector<int64_t> k(call.k.size() * static_cast<size_t>(samples));
  for (size_t i = 0; i < k.size(); ++i) k[i] = call.k[i / static_cast<size_t>(samples)];
  std::vector<T> z(x.size());
  std::vector<Status> status(static_cast<size_t>(rows));
  solve(call.solver,
        Rows<T>{.count = rows,
                .scores = x.data(),
                .mask = mask.size() != 0 ? &mask[0] : nullptr,
                .k = k.empty() ? nullptr : k.data(),
                .z = z.data(),
                .status = status.data()},
        executor);
  return z;
}

/// z as the output says: [B, S, n], or the mean over S.
template <class T>
std::vector<T> shape_output(const Case<T>& call, const std::vector<T>& z) {
  if (call.settings.output == Output::kSamples) return z;
  const int64_t n = call.n(), samples = call.samples();
  std::vector<T> mean(static_cast<size_t>(call.count * n));
  for (int64_t b = 0; b < call.count; ++b) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0.0;
      for (int64_t s = 0; s < samples; ++s) {
        sum += static_cast<double>(z[static_cast<size_t>((b * samples + s) * n + j)]);
      }
      mean[static_cast<size_t>(b * n + j)] = static_cast<T>(sum / static_cast<double>(samples));
    }
  }
  return mean;
}

template <class T>
Outcome<T> run_staged(const Case<T>& call, const Executor& executor = sequential()) {
  const PassSettings& settings = call.settings;
  const Sense sense = sense_of(call.solver);
  const Examples<T> examples = call.examples();
  const auto size = static_cast<size_t>(call.count * call.samples() * call.n());
  std::vector<T> x(size), left(size), right(size);
  Outcome<T> result;
  perturb(settings, sense, examples, x.data(), executor);
  const std::vector<T> z = solve_all(call, x, executor);
  result.z = shape_output(call, z);
  result.dtheta.resize(static_cast<size_t>(call.count * call.n()));
  if (settings.difference == Difference::kStraightThrough) {
    const auto dy = GradientRows<T>::packed(call.dy.data(), call.rows(), call.n());
    straight_through(settings, examples, dy, result.dtheta.data(), executor);
    constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
    result.report = {.lambda_mean = kNaN, .lambda_min = kNaN, .lambda_max = kNaN, .changes = {}};
    return result;
  }
  const bool kept = keeps_solution(settings);
  std::vector<double> lambda(static_cast<size_t>(call.count * (call.rows() + 2)));
  std::vector<uint8_t> counted(static_cast<size_t>(call.count * call.rows()));
  step(settings, {.sense = sense, .size = call.solver.solution_size()}, examples, call.dy.data(),
       call.alpha, kept ? nullptr : left.data(), right.data(), lambda.data(), counted.data(),
       executor);
  const std::vector<T> z_left = kept ? z : solve_all(call, left, executor);
  const std::vector<T> z_right = solve_all(call, right, executor);
  result.report = difference(settings, examples, z_left.data(), z_right.data(), lambda.data(),
                             counted.data(), result.dtheta.data(), executor);
  return result;
}

}  // namespace aimle::cases
