// The properties of a solver that do not depend on an instance, used by C++, Python and the command
// line. register_solver.h explains how a solver is declared, registry.h how it is found.
//
//   auto topk = aimle::parse_solver("topk:k=5");      // an UnsizedSolver
//   aimle::Solver solver = topk->fit({{20}});         // 5 of 20
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "aimle/exact/exact.h"
#include "aimle/map/declaration.h"
#include "aimle/map/solver.h"

namespace aimle {

class SolverKind;

/// The data of instances besides their scores, as far as needed to size a solver.
struct Brought {
  bool k = false;                 // one k each, which replaces the solver's
  int64_t data_length = -1;       // numbers of data each; < 0: none
  const int64_t* data = nullptr;  // the data of all instances, if structures are to be listed
};

/// A solver with settings but without a size, which follows from theta.
class UnsizedSolver {
 public:
  virtual ~UnsizedSolver() = default;

  virtual const SolverKind& kind() const = 0;
  /// The solver in its canonical form, all settings named: "topk:k=5".
  const std::string& text() const { return text_; }
  /// The solver for instances of this shape. Throws std::invalid_argument if there is none.
  virtual Solver fit(Shape instance, const Brought& brought = {}) const = 0;
  /// What the settings alone determine about the number of ones.
  virtual SolutionSize solution_size() const = 0;
  /// The shape of an instance of size n: entries, vertices or a side, depending on the solver.
  virtual std::vector<int64_t> shape_for(int64_t n) const = 0;

  /// The settings if they have this type, otherwise null.
  template <MapSolver S>
  const S* get_if() const {
    return type() == typeid(S) ? static_cast<const S*>(settings()) : nullptr;
  }

 protected:
  explicit UnsizedSolver(std::string text) : text_(std::move(text)) {}

 private:
  virtual const std::type_info& type() const = 0;
  virtual const void* settings() const = 0;

  std::string text_;
};

/// For costs: the standard deviation of costs in [.5, 1.5] (docs/results/gradients.md).
inline constexpr double kCostTemperature = 0.3;

/// name=value pairs in the order given.
using SettingTexts = std::vector<std::pair<std::string, std::string>>;

/// One solver in the registry.
class SolverKind {
 public:
  virtual ~SolverKind() = default;

  std::string name;
  std::string summary;       // one line: what is chosen
  std::string ties;          // which of several best solutions is returned
  std::string noise;         // the default of layers: "gumbel", "normal", "logistic"
  double temperature = 1.0;  // of that noise
  Sense sense = Sense::kMax;
  int64_t instance_dims = 1;
  bool fixed_size = false;  // whether all solutions of an instance have the same number of ones
  bool has_costs = false;   // scores are costs and must not be below zero
  bool takes_k = false;     // k can be given per row
  bool takes_data = false;  // instances must have data
  bool lists = false;       // structures() lists them all
  Swaps swaps = Swaps::kNone;
  std::shared_ptr<const ExactKind> exact;  // null: no exact distribution in closed form
  std::vector<SolverSetting> settings;

  /// Throws std::invalid_argument for unknown, missing or bad settings, naming what is allowed.
  virtual std::shared_ptr<const UnsizedSolver> make(const SettingTexts& given) const = 0;
  virtual const std::type_info& type() const = 0;
};

}  // namespace aimle
