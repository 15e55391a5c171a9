#include "aimle/registry/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "aimle/registry/library_solvers.h"
#include "aimle/registry/register_solver.h"

namespace elsewhere {

/// A solver defined only in this file: always chooses the first entry.
struct First {
  static constexpr std::string_view kName = "first";
  static constexpr aimle::Sense kSense = aimle::Sense::kMin;
  static constexpr bool kHasCosts = true;

  int64_t n = 0;
  int64_t ignored = 7;

  int64_t size() const { return n; }
  double work_ns() const { return 1.0; }
  aimle::SolutionSize solution_size() const { return {.fixed = true, .ones = 1}; }
  void validate() const {}
  void fit(aimle::Shape instance) { n = instance[0]; }
  static void declare(aimle::Declaration<First>& solver) {
    solver.summary = "the first entry";
    solver.setting("ignored", &First::ignored, {.min = 1, .max = 9}, "a \"number\"");
  }
};

template <class T>
void solve_each(const First& solver, const aimle::Rows<T>& rows) {
  for (int64_t i = 0; i < rows.count * solver.n; ++i) rows.z[i] = i % solver.n == 0 ? T(1) : T(0);
  std::fill_n(rows.status, rows.count, aimle::Status::kOk);
}
void solve_rows(const First& solver, const aimle::Rows<float>& rows) { solve_each(solver, rows); }
void solve_rows(const First& solver, const aimle::Rows<double>& rows) { solve_each(solver, rows); }

/// Another one of the same name.
struct Impostor : First {
  static void declare(aimle::Declaration<Impostor>& solver) { solver.summary = "not the first"; }
};
void solve_rows(const Impostor&, const aimle::Rows<float>&) {}
void solve_rows(const Impostor&, const aimle::Rows<double>&) {}

AIMLE_REGISTER_SOLVER(First)

}  // namespace elsewhere

namespace aimle {
namespace {

template <class Call>
std::string message_of(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

std::string refusal(const char* text) {
  return message_of([&] { parse_solver(text); });
}

TEST(Registry, HasTheLibrarysSolversAndThoseOfOthers) {
  const std::vector<std::string> names = solver_names();
  EXPECT_EQ(names.back(), "first");
  LibrarySolvers::for_each([&]<class S>(std::type_identity<S>) {
    EXPECT_EQ(std::count(names.begin(), names.end(), S::kName), 1) << S::kName;
  });
  const SolverKind& first = solver_kind("first");
  EXPECT_TRUE(first.sense == Sense::kMin && first.has_costs && first.fixed_size);
  EXPECT_TRUE(!first.takes_k && !first.lists && first.exact == nullptr);
  EXPECT_EQ(first.ties, "the lower index wins");
  EXPECT_NE(solvers_as_json().find("a \\\"number\\\""), std::string::npos);
}

TEST(Registry, ASolverIsFittedToAShape) {
  const auto first = parse_solver("first:ignored=3");
  EXPECT_EQ(first->get_if<elsewhere::First>()->ignored, 3);
  EXPECT_EQ(first->get_if<TopK>(), nullptr);
  const int64_t instance[] = {4};
  const Solver solver = first->fit(instance);
  float scores[4] = {4, 3, 2, 1}, z[4] = {};
  Status status{};
  solve(solver, Rows<float>{.count = 1, .scores = scores, .z = z, .status = &status});
  EXPECT_EQ(std::vector<float>(z, z + 4), (std::vector<float>{1, 0, 0, 0}));
}

TEST(Registry, TheTextIsCanonical) {
  EXPECT_EQ(parse_solver("argmax")->text(), "argmax");
  EXPECT_EQ(parse_solver("first")->text(), "first:ignored=7");
  EXPECT_EQ(parse_solver("grid_path:target=5:-1,neighbourhood=4")->text(),
            "grid_path:neighbourhood=4,source=0:0,target=5:-1,negative=clip");
  for (const std::string text : {"topk:k=5", "spanning_tree:n=12", "first:ignored=9"}) {
    EXPECT_EQ(parse_solver(text)->text(), text);
    EXPECT_EQ(parse_solver(text), parse_solver(text)) << "parsed twice";
  }
}

TEST(Registry, BadTextsAreNamed) {
  const std::string unknown = refusal("tokp");
  EXPECT_TRUE(unknown.starts_with("[aimle::solver] expected one of argmax, topk, ")) << unknown;
  EXPECT_TRUE(unknown.ends_with(", first but got 'tokp'; did you mean 'topk'?")) << unknown;
  EXPECT_EQ(refusal("topk"),
            "[aimle::topk] needs k (number of chosen entries), for example topk:k=1");
  EXPECT_EQ(refusal("topk:kk=1"),
            "[aimle::topk] takes no 'kk'; its settings are k; did you mean 'k'?");
  EXPECT_EQ(refusal("argmax:k=1"), "[aimle::argmax] takes no 'k'; it has no settings");
  EXPECT_EQ(refusal("topk:k=1,k=2"), "[aimle::topk] expected k once but it was given twice");
  EXPECT_EQ(refusal("topk:k"), "[aimle::solver] expected name:setting=value,... but got 'topk:k'");
  for (const char* text : {"topk:k=-1", "topk:k=", "topk:k=1.5", "topk:k=99999999999999999999"}) {
    EXPECT_NE(refusal(text).find("expected k >= 0 but got k="), std::string::npos) << text;
  }
  EXPECT_EQ(refusal("first:ignored=10"),
            "[aimle::first] expected 1 <= ignored <= 9 but got ignored=10");
  EXPECT_EQ(refusal("grid_path:negative=maybe"),
            "[aimle::grid_path] expected negative to be clip or error but got negative=maybe");
  EXPECT_EQ(refusal("grid_path:source=1"),
            "[aimle::grid_path] expected source to be row:column, two integers but got source=1");
}

TEST(Registry, OneSolverHasAName) {
  EXPECT_TRUE(register_solver<elsewhere::First>());  // the same again
  EXPECT_EQ(message_of([] { register_solver<elsewhere::Impostor>(); }),
            "[aimle::register_solver] there is another solver named 'first': choose another kName");
  const auto refusals = refusals_during([] {  // says so, and goes on
    EXPECT_FALSE(register_on_load(std::make_unique<detail::KindOf<elsewhere::Impostor>>()));
  });
  ASSERT_EQ(refusals.size(), 1U);
  EXPECT_NE(refusals[0].find("another solver named 'first'"), std::string::npos);
  EXPECT_EQ(solver_kind("first").summary, "the first entry");
}

TEST(Registry, TreesTakeTheirSizeFromTheScores) {
  const auto tree = parse_solver("spanning_tree");
  const int64_t ten[] = {10}, eleven[] = {11};
  EXPECT_EQ(tree->fit(ten).get_if<SpanningTree>()->vertices, 5);
  EXPECT_NE(message_of([&] { tree->fit(eleven); }).find("n(n-1)/2 entries"), std::string::npos);
}

}  // namespace
}  // namespace aimle
