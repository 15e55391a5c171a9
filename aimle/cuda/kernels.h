// The kernels of one type of solver, and their registration.
//
// A solver has kernels if `map_rows` takes it (in its own namespace or here); `whole_examples`
// (whole_examples.h) and `evaluate_rows`, `sample_rows` (exact.h) are optional. Those of the
// library's solvers are built in; others are registered next to the solver itself:
//
//   AIMLE_REGISTER_KERNELS(Viterbi)
#pragma once

#include <memory>
#include <typeinfo>

#include "aimle/cuda/device_rows.h"
#include "aimle/cuda/exact.h"
#include "aimle/cuda/whole_examples.h"

namespace aimle::cuda {

/// What they do with rows of T.
template <class T>
class KernelsFor {
 public:
  virtual ~KernelsFor() = default;

  /// Solves every row of the source.
  virtual void map_rows(const Solver& solver, const RowSource<T>& source, const RowSink<T>& sink,
                        const Context& context) const = 0;
  virtual int64_t whole_examples(const Solver& solver, const WholeExamples<T>& work,
                                 const Context& context) const = 0;
  // Throws std::invalid_argument if the solver has no exact distribution on the device.
  virtual void evaluate_rows(const Solver& solver, const DistributionRows<T>& rows,
                             const Context& context) const = 0;
  virtual void sample_rows(const Solver& solver, const SampleRows<T>& rows, const DeviceKey& key,
                           const Context& context) const = 0;
};

class Kernels : public KernelsFor<float>, public KernelsFor<double> {
 public:
  using KernelsFor<float>::map_rows, KernelsFor<double>::map_rows;
  using KernelsFor<float>::whole_examples, KernelsFor<double>::whole_examples;
  using KernelsFor<float>::evaluate_rows, KernelsFor<double>::evaluate_rows;
  using KernelsFor<float>::sample_rows, KernelsFor<double>::sample_rows;

  virtual bool has_whole_examples() const = 0;
};

/// Those of this solver. Throws std::invalid_argument if it has none, std::runtime_error if nothing
/// was built for a GPU.
const Kernels& kernels_of(const Solver& solver);

/// Registers kernels for solvers of this type.
void register_kernels(const std::type_info& type, std::unique_ptr<const Kernels> kernels);

namespace detail {

[[noreturn]] void throw_no_exact(std::string_view name);

/// Finds the function in the namespace of the solver, or here.
template <class S, class T>
void map_with(const S& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  using cuda::map_rows;
  map_rows(solver, source, sink, context);
}

template <MapSolver S>
constexpr bool kWhole = requires(const S& s, const WholeExamples<float>& work,
                                 const Context& context) {
  cuda::whole_examples(s, work, context);
};
template <MapSolver S>
constexpr bool kExact = requires(const S& s, const DistributionRows<float>& rows,
                                 const Context& context) {
  cuda::evaluate_rows(s, rows, context);
};

/// Adds the functions for rows of T to a base.
template <MapSolver S, class T, class Base>
class WithKernelsFor : public Base {
 public:
  using Base::map_rows, Base::whole_examples, Base::evaluate_rows, Base::sample_rows;

  void map_rows(const Solver& solver, const RowSource<T>& source, const RowSink<T>& sink,
                const Context& context) const override {
    map_with(*solver.get_if<S>(), source, sink, context);
  }
  int64_t whole_examples(const Solver& solver, const WholeExamples<T>& work,
                         const Context& context) const override {
    if constexpr (kWhole<S>) return cuda::whole_examples(*solver.get_if<S>(), work, context);
    return 0;
  }
  void evaluate_rows(const Solver& solver, const DistributionRows<T>& rows,
                     const Context& context) const override {
    if constexpr (kExact<S>) {
      cuda::evaluate_rows(*solver.get_if<S>(), rows, context);
    } else {
      throw_no_exact(S::kName);
    }
  }
  void sample_rows(const Solver& solver, const SampleRows<T>& rows, const DeviceKey& key,
                   const Context& context) const override {
    if constexpr (kExact<S>) {
      cuda::sample_rows(*solver.get_if<S>(), rows, key, context);
    } else {
      throw_no_exact(S::kName);
    }
  }
};

template <MapSolver S>
class KernelsOf final : public WithKernelsFor<S, float, WithKernelsFor<S, double, Kernels>> {
 public:
  bool has_whole_examples() const override { return kWhole<S>; }
};

}  // namespace detail

template <MapSolver S>
bool register_kernels() {
  register_kernels(typeid(S), std::make_unique<detail::KernelsOf<S>>());
  return true;
}

}  // namespace aimle::cuda

/// At namespace scope in one source file, next to AIMLE_REGISTER_SOLVER.
#define AIMLE_REGISTER_KERNELS(Type)                            \
  [[maybe_unused]] static const bool aimle_has_kernels_##Type = \
      ::aimle::cuda::register_kernels<Type>();
