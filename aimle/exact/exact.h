// Exact distributions behind one interface: any of them, for any solver that has one.
#pragma once

#include "aimle/exact/distribution.h"
#include "aimle/map/solver.h"

namespace aimle {

/// The distribution over the structures of one type of solver. The solvers handed in must be of
/// that type.
class ExactKind {
 public:
  virtual ~ExactKind() = default;

  virtual void evaluate(const Solver& solver, const DistributionRows<float>& rows,
                        const Executor& executor) const = 0;
  virtual void evaluate(const Solver& solver, const DistributionRows<double>& rows,
                        const Executor& executor) const = 0;
  virtual void sample(const Solver& solver, const SampleRows<float>& rows,
                      const Executor& executor) const = 0;
  virtual void sample(const Solver& solver, const SampleRows<double>& rows,
                      const Executor& executor) const = 0;
};

template <ExactDistribution S>
class ExactKindOf final : public ExactKind {
 public:
  void evaluate(const Solver& solver, const DistributionRows<float>& rows,
                const Executor& executor) const override {
    aimle::evaluate(*solver.get_if<S>(), rows, executor);
  }
  void evaluate(const Solver& solver, const DistributionRows<double>& rows,
                const Executor& executor) const override {
    aimle::evaluate(*solver.get_if<S>(), rows, executor);
  }
  void sample(const Solver& solver, const SampleRows<float>& rows,
              const Executor& executor) const override {
    aimle::sample(*solver.get_if<S>(), rows, executor);
  }
  void sample(const Solver& solver, const SampleRows<double>& rows,
              const Executor& executor) const override {
    aimle::sample(*solver.get_if<S>(), rows, executor);
  }
};

}  // namespace aimle
