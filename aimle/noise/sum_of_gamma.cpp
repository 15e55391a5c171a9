#include "aimle/noise/sum_of_gamma.h"

#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <utility>

#include "aimle/base/check.h"
#include "aimle/noise/gamma_mixture.h"
#include "aimle/noise/quantile_table.h"

namespace aimle {
namespace {

/// log y below which Y counts as zero: float32 noise cannot distinguish such values.
constexpr double kLogFloor = -40;

/// The quantiles of one tail, requested in order of decreasing p, starting at 1/2.
class TailQuantiles {
 public:
  TailQuantiles(const GammaMixture& mixture, bool upper)
      : mixture_(mixture), upper_(upper), floor_probability_(at(kLogFloor).probability) {}

  double operator()(double p) {
    if (upper_ ? floor_probability_ <= p : floor_probability_ >= p) return 0;
    if (!started_) start(p);
    // Newton on log(probability) as a function of log y. The last slope predicts the first step.
    log_y_ += std::log(p / probability_) / slope_;
    for (int step = 0; step < 100; ++step) {
      evaluate(log_y_);
      const double move = std::log(p / probability_) / slope_;
      log_y_ += move;
      probability_ = p;
      if (std::abs(move) < 1e-5 || std::abs(move) * std::exp(log_y_) < 1e-10) break;
    }
    return std::exp(log_y_);
  }

 private:
  GammaMixture::Value at(double log_y) const {
    const double y = std::exp(log_y);
    return upper_ ? mixture_.upper(y) : mixture_.lower(y);
  }

  void evaluate(double log_y) {
    const auto [probability, density] = at(log_y);
    probability_ = probability;
    slope_ = (upper_ ? -1 : 1) * density * std::exp(log_y) / probability;
  }

  void start(double p) {
    double low = kLogFloor, high = 8;
    while (high - low > 1e-2) {
      const double middle = (low + high) / 2;
      (((at(middle).probability < p) != upper_) ? low : high) = middle;
    }
    log_y_ = (low + high) / 2;
    evaluate(log_y_);
    started_ = true;
  }

  const GammaMixture& mixture_;
  bool upper_;
  double floor_probability_;
  bool started_ = false;
  double log_y_ = 0, probability_ = 0, slope_ = 0;
};

/// The cubic through four points (t, value), as coefficients of 1, t, t^2, t^3.
void fit_cubic(const double (&t)[4], const double (&value)[4], double shift, float* out) {
  double d[4] = {value[0], value[1], value[2], value[3]};
  for (int order = 1; order < 4; ++order) {
    for (int i = 3; i >= order; --i) d[i] = (d[i] - d[i - 1]) / (t[i] - t[i - order]);
  }
  double c[4] = {d[3], 0, 0, 0};
  for (int i = 2; i >= 0; --i) {
    for (int degree = 3; degree > 0; --degree) c[degree] = c[degree - 1] - t[i] * c[degree];
    c[0] = d[i] - t[i] * c[0];
  }
  c[0] -= shift;
  for (int degree = 0; degree < 4; ++degree) out[degree] = static_cast<float>(c[degree]);
}

std::vector<float> build(const SumOfGamma& settings) {
  const GammaMixture mixture(settings.k, settings.iterations);
  const double shift =
      std::log(static_cast<double>(settings.iterations)) / static_cast<double>(settings.k);
  double nodes[4];  // Chebyshev's, on [-1/2, 1/2], falling
  for (int i = 0; i < 4; ++i) nodes[i] = 0.5 * std::cos((2 * i + 1) * std::numbers::pi / 8);

  std::vector<float> table(kQuantileTableSize);
  for (const bool upper : {false, true}) {
    TailQuantiles quantile(mixture, upper);
    float* tail = table.data() + (upper ? kQuantileCellsPerTail * kQuantileCoefficients : 0);
    tail[(kQuantileCellsPerTail - 1) * kQuantileCoefficients] =
        static_cast<float>(quantile(0.5) - shift);
    for (int cell = kQuantileCellsPerTail - 2; cell >= 0; --cell) {
      const int octave = cell / kQuantileCellsPerOctave, part = cell % kQuantileCellsPerOctave;
      double values[4];
      for (int i = 0; i < 4; ++i) {
        const double mantissa = 1 + (part + 0.5 + nodes[i]) / kQuantileCellsPerOctave;
        values[i] = quantile(std::ldexp(mantissa, octave - 33));
      }
      fit_cubic(nodes, values, shift, tail + cell * kQuantileCoefficients);
    }
  }
  return table;
}

}  // namespace

void SumOfGamma::validate() const {
  AIMLE_CHECK(1 <= k && k <= kMaxK, "[aimle::sum_of_gamma] expected 1 <= k <= ", kMaxK,
              " but got k=", k);
  AIMLE_CHECK(1 <= iterations && iterations <= kMaxIterations,
              "[aimle::sum_of_gamma] expected 1 <= iterations <= ", kMaxIterations,
              " but got iterations=", iterations);
}

std::shared_ptr<const std::vector<float>> quantile_table(const SumOfGamma& settings) {
  settings.validate();
  static std::mutex mutex;
  static std::map<std::pair<int64_t, int64_t>, std::shared_ptr<const std::vector<float>>> tables;
  std::lock_guard lock(mutex);
  auto& table = tables[{settings.k, settings.iterations}];
  if (!table) table = std::make_shared<const std::vector<float>>(build(settings));
  return table;
}

}  // namespace aimle
