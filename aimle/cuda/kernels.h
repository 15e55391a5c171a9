// The kernels of one type of solver, and their registration.
//
// A solver has kernels if `map_rows` takes it (in its own namespace or here); `whole_examples`
// (whole_examples.h) and `evaluate_rows`, `sample_rows` (exact.h) are optional. Those of the
// library's solvers are built in; others are registered next to the solver itself:
//
//   AIMLE_REGISTER_KERNELS(Viterbi)
#pragma once

#include <memory>
#include <stdexcept>
#include <typeinfo>
#include <utility>

#include "aimle/cuda/device_rows.h"
#include "aimle/cuda/exact.h"
#include "aimle/cuda/whole_examples.h"

namespace aimle::cuda {

class Kernels {
 public:
  virtual ~Kernels() = default;

  /// Solves every row of the source.
  virtual void map_rows(const Solver& solver, const RowSource<float>& source,
                        const RowSink<float>& sink, const Context& context) const = 0;
  virtual void map_rows(const Solver& solver, const RowSource<double>& source,
                        const RowSink<double>& sink, const Context& context) const = 0;

  virtual bool has_whole_examples() const = 0;
  virtual int64_t whole_examples(const Solver& solver, const WholeExamples<float>& work,
                                 const Context& context) const = 0;
  virtual int64_t whole_examples(const Solver& solver, const WholeExamples<double>& work,
                                 const Context& context) const = 0;

  // Throws std::invalid_argument if the solver has no exact distribution on the device.
  virtual void evaluate_rows(const Solver& solver, const DistributionRows<float>& rows,
                             const Context& context) const = 0;
  virtual void evaluate_rows(const Solver& solver, const DistributionRows<double>& rows,
                             const Context& context) const = 0;
  virtual void sample_rows(const Solver& solver, const SampleRows<float>& rows,
                           const DeviceKey& key, const Context& context) const = 0;
  virtual void sample_rows(const Solver& solver, const SampleRows<double>& rows,
                           const DeviceKey& key, const Context& context) const = 0;
};

/// Those of this solver. Throws std::invalid_argument if it has none, std::runtime_error if nothing
/// was built for a GPU.
const Kernels& kernels_of(const Solver& solver);

/// Registers kernels for solvers of this type.
void register_kernels(const std::type_info& type, std::unique_ptr<const Kernels> kernels);

namespace detail {

[[noreturn]] void throw_no_exact(std::string_view name);

template <MapSolver S>
class KernelsOf final : public Kernels {
 public:
  void map_rows(const Solver& solver, const RowSource<float>& source, const RowSink<float>& sink,
                const Context& context) const override {
    map(solver, source, sink, context);
  }
  void map_rows(const Solver& solver, const RowSource<double>& source, const RowSink<double>& sink,
                const Context& context) const override {
    map(solver, source, sink, context);
  }

  bool has_whole_examples() const override { return kWhole; }
  int64_t whole_examples(const Solver& solver, const WholeExamples<float>& work,
                         const Context& context) const override {
    return whole(solver, work, context);
  }
  int64_t whole_examples(const Solver& solver, const WholeExamples<double>& work,
                         const Context& context) const override {
    return whole(solver, work, context);
  }

  void evaluate_rows(const Solver& solver, const DistributionRows<float>& rows,
                     const Context& context) const override {
    evaluate(solver, rows, context);
  }
  void evaluate_rows(const Solver& solver, const DistributionRows<double>& rows,
                     const Context& context) const override {
    evaluate(solver, rows, context);
  }
  void sample_rows(const Solver& solver, const SampleRows<float>& rows, const DeviceKey& key,
                   const Context& context) const override {
    sample(solver, rows, key, context);
  }
  void sample_rows(const Solver& solver, const SampleRows<double>& rows, const DeviceKey& key,
                   const Context& context) const override {
    sample(solver, rows, key, context);
  }

 private:
  static constexpr bool kWhole =
      requires(const S& s, const WholeExamples<float>& work, const Context& context) {
    cuda::whole_examples(s, work, context);
  };
  static constexpr bool kExact =
      requires(const S& s, const DistributionRows<float>& rows, const Context& context) {
    cuda::evaluate_rows(s, rows, context);
  };

  template <class T>
  static void map(const Solver& solver, const RowSource<T>& source, const RowSink<T>& sink,
                  const Context& context) {
    using cuda::map_rows;
    map_rows(*solver.get_if<S>(), source, sink, context);
  }
  template <class T>
  static int64_t whole(const Solver& solver, const WholeExamples<T>& work, const Context& context) {
    if constexpr (kWhole) return cuda::whole_examples(*solver.get_if<S>(), work, context);
    return 0;
  }
  template <class T>
  static void evaluate(const Solver& solver, const DistributionRows<T>& rows,
                       const Context& context) {
    if constexpr (kExact) {
      cuda::evaluate_rows(*solver.get_if<S>(), rows, context);
    } else {
      throw_no_exact(S::kName);
    }
  }
  template <class T>
  static void sample(const Solver& solver, const SampleRows<T>& rows, const DeviceKey& key,
                     const Context& context) {
    if constexpr (kExact) {
      cuda::sample_rows(*solver.get_if<S>(), rows, key, context);
    } else {
      throw_no_exact(S::kName);
    }
  }
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
