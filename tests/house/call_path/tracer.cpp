// A solver that records its call stack: one line per caller, with the library and the offset.
#include <dlfcn.h>
#include <execinfo.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "aimle/registry/register_solver.h"

namespace tracing {

struct Tracer {
  static constexpr std::string_view kName = "tracer";
  static constexpr aimle::Sense kSense = aimle::Sense::kMax;
  int64_t n = 0;
  int64_t size() const { return n; }
  double work_ns() const { return 1.0; }
  aimle::SolutionSize solution_size() const { return {.fixed = true, .ones = 1}; }
  void validate() const {}
  void fit(aimle::Shape instance) { n = instance[0]; }
  static void declare(aimle::Declaration<Tracer>& solver) {
    solver.summary = "writes down who calls it";
  }
};

template <class T>
void write_down(const Tracer& solver, const aimle::Rows<T>& rows) {
  void* frames[64];
  const int count = backtrace(frames, 64);
  std::ofstream file(std::getenv("CALL_PATH"), std::ios::app);
  for (int i = 0; i < count; ++i) {
    Dl_info about;
    if (dladdr(frames[i], &about) == 0) continue;
    file << about.dli_fname << ' ' << std::hex
         << static_cast<char*>(frames[i]) - static_cast<char*>(about.dli_fbase) - 1 << '\n';
  }
  file << "end\n";
  for (int64_t i = 0; i < rows.count * solver.n; ++i) rows.z[i] = i % solver.n == 0 ? T(1) : T(0);
  std::fill_n(rows.status, rows.count, aimle::Status::kOk);
}
void solve_rows(const Tracer& s, const aimle::Rows<float>& rows) { write_down(s, rows); }
void solve_rows(const Tracer& s, const aimle::Rows<double>& rows) { write_down(s, rows); }
AIMLE_REGISTER_SOLVER(Tracer)
}  // namespace tracing
