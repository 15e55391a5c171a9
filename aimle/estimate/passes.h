// The estimators on rows in memory: noise, perturb, solve and difference in one pass.
//
// The rows of a batch (example b, sample s) are processed in blocks that stay in the cache: draw
// the block's noise, add theta, solve, and either write z or add the difference of two solutions to
// the example's gradient. Noise is drawn again in backward, so nothing that grows with the number
// of samples is kept except z itself (and one bit per entry of z for the forward difference).
//
// The staged functions do the same one stage at a time on whole tensors, for callable solvers. Both
// share every formula, and agree bit for bit.
//
//   aimle::forward(settings, solver, examples, {.z = z}, executor);
//   const aimle::BackwardReport seen = aimle::backward(settings, solver, examples, pass, executor);
//   aimle::update_alpha(target, settings.samples, seen.changes, state);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "aimle/base/host_device.h"
#include "aimle/base/parallel.h"
#include "aimle/estimate/controller.h"
#include "aimle/estimate/gradient_rows.h"
#include "aimle/estimate/settings.h"
#include "aimle/map/solver.h"

namespace aimle {

/// The first row (b * samples + s) that could not be solved, if any; rows with a NaN come last.
struct Failure {
  int64_t row = -1;
  Status status = Status::kOk;
};

/// For a row in which the best scores are chosen: the entry that would leave first and the one that
/// would enter next, -1 if there is none, and their scores. This is all that thresholds need to
/// know about the noise.
struct KeptRivals {
  int32_t worst_in = -1;  // the last of equals
  int32_t best_out = -1;  // the first of equals
  double worst_in_score = 0.0;
  double best_out_score = 0.0;
};

template <class T>
struct ForwardPass {
  T* z = nullptr;           // [B, S, n], or [B, n] for Output::kMean
  uint8_t* bits = nullptr;  // [B, S, bytes_per_row(n)]: z packed, or null
  /// [B, S] KeptRivals for thresholds, so that backward needs no noise; or null. Not aligned.
  std::byte* rivals = nullptr;

  /// For kSamples instead of z, for conversion to another type: `store` writes `count` entries,
  /// starting at entry `first` of [B, S, n], to `stored`.
  void* stored = nullptr;
  void (*store)(const T* z, int64_t first, int64_t count, void* stored) = nullptr;
};

AIMLE_HD int64_t bytes_per_row(int64_t n) { return (n + 7) / 8; }

template <class T>
Failure forward(const PassSettings& settings, const Solver& solver, const Examples<T>& examples,
                const ForwardPass<T>& pass, const Executor& executor);

template <class T>
struct BackwardPass {
  const T* dy = nullptr;              // the shape of z
  const uint8_t* bits = nullptr;      // from forward, if keeps_solution(settings); needed for
                                      // thresholds
  const std::byte* rivals = nullptr;  // from forward, or null
  double alpha = 0.0;                 // read for adaptive targets
  T* dtheta = nullptr;                // [B, n], written
  std::optional<GradientRows<T>> dy_rows = {};  // instead of dy, if it is not [B, R, n] of T

  GradientRows<T> rows(const PassSettings& settings, int64_t n) const {
    return dy_rows ? *dy_rows : GradientRows<T>::packed(dy, gradient_rows(settings), n);
  }
};

/// lambda over the examples that had a gradient (NaN if none had), what changed, and the first row
/// whose scores the solver rejects after the step (GridPath with negative costs not allowed).
struct BackwardReport {
  double lambda_mean = 0.0;
  double lambda_min = 0.0;
  double lambda_max = 0.0;
  Changes changes;
  Failure failure;
  /// Thresholds only: the share of weights capped by max_weight, and the share of the gradient's
  /// mass (weight times the change of <d, z>) lost to the cap, which bounds the bias.
  double capped_share = 0.0;
  double capped_mass = 0.0;
  Clipping clipping;  // grid paths only, over the solves of the pass
};

template <class T>
BackwardReport backward(const PassSettings& settings, const Solver& solver,
                        const Examples<T>& examples, const BackwardPass<T>& pass,
                        const Executor& executor);

// ---- Staged -------------------------------------------------------------------------------------

/// The properties of a callable solver that the stages need.
struct CallableSolver {
  Sense sense = Sense::kMax;
  SolutionSize size;
};

/// x [B, S, n]: the input of the solver. `solver_sense` is the sense of the solver.
template <class T>
void perturb(const PassSettings& settings, Sense solver_sense, const Examples<T>& examples, T* x,
             const Executor& executor);

/// x_left, x_right [B, S, n] (x_left may be null), and the step sizes used, to be passed to
/// `difference`: lambda [B, R + 2] float64 (one ExampleStep per row: one per gradient row, the
/// example's, the reported one) and counted [B, R], where R is S, or 1 for Output::kMean.
template <class T>
void step(const PassSettings& settings, const CallableSolver& solver, const Examples<T>& examples,
          const T* dy, double alpha, T* x_left, T* x_right, double* lambda, uint8_t* counted,
          const Executor& executor);

/// dtheta [B, n] from the solutions of `step`'s scores.
template <class T>
BackwardReport difference(const PassSettings& settings, const Examples<T>& examples,
                          const T* z_left, const T* z_right, const double* lambda,
                          const uint8_t* counted, T* dtheta, const Executor& executor);

/// dtheta [B, n] = sum over samples of dy (kSamples), or dy (kMean), with the sense's sign.
template <class T>
void straight_through(const PassSettings& settings, const Examples<T>& examples,
                      const GradientRows<T>& dy, T* dtheta, const Executor& executor);

}  // namespace aimle
