#include "aimle/estimate/passes.h"

#include <gtest/gtest.h>

#include "aimle/base/isa.h"
#include "tests/estimate/cases.h"
#include "tests/estimate/plain.h"

namespace aimle::cases {
namespace {

/// The instruction sets of this processor.
std::vector<Isa> instruction_sets() {
  std::vector<Isa> sets = {Isa::kPortable};
  if (processor_has_avx2()) sets.push_back(Isa::kAvx2);
  if (processor_has(Isa::kAvx512)) sets.push_back(Isa::kAvx512);
  return sets;
}

/// Runs `body` under each instruction set and puts the choice back.
template <class Body>
void with_each_isa(Body body) {
  const Isa before = isa();
  for (const Isa chosen : instruction_sets()) {
    use_isa(chosen);
    body(chosen);
  }
  use_isa(before);
}

template <class T>
class EstimatorTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(EstimatorTest, Types);

TYPED_TEST(EstimatorTest, FusedStagedAndPlainAgreeOnRandomCalls) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    Rng rng(seed);
    const auto call = draw_case<TypeParam>(rng, 5, 9, 40);
    const std::string text = "seed " + std::to_string(seed) + ": " + call.text();
    const Outcome<TypeParam> expected = run_plainly(call);
    with_each_isa([&](Isa chosen) {
      const std::string where = std::string(name(chosen)) + " " + text;
      expect_same(run_fused(call), expected, "fused, " + where);
      expect_same(run_staged(call), expected, "staged, " + where);
    });
    if (this->HasFailure()) return;
  }
}

TYPED_TEST(EstimatorTest, FusedEqualsStagedForAllNoisesSolversAndModes) {
  for (const NoiseKind noise : kNoises) {
    for (int which = 0; which < kSolverCount; ++which) {
      for (int mode = 0; mode < 12; ++mode) {
        Rng rng(static_cast<uint64_t>(which * 12 + mode));
        Case<TypeParam> call{.solver = draw_solver(which, 30, rng), .count = 3};
        call.settings.samples = 7;
        use_noise(noise, call.settings);
        call.settings.difference = static_cast<Difference>(mode % 3);
        call.settings.output = static_cast<Output>(mode / 3 % 2);
        call.settings.sense = static_cast<Sense>(mode / 6);
        call.settings.target = AdaptiveTarget{};
        call.draw_theta(rng);
        call.draw_dy(rng);
        const Outcome<TypeParam> expected = run_plainly(call);
        expect_same(run_fused(call), expected, "fused " + call.text());
        expect_same(run_staged(call), expected, "staged " + call.text());
        if (this->HasFailure()) return;
      }
    }
  }
}

TYPED_TEST(EstimatorTest, BlockBordersDoNotShow) {
  struct Shape {
    int64_t count, samples, n;
  };
  std::vector<Shape> shapes;
  for (const int64_t samples : {1, 7, 63, 64, 65, 1000}) {
    for (const int64_t n : {1, 2, 5, 8, 16}) shapes.push_back({3, samples, n});
  }
  for (const int64_t n : {31, 32, 33, 255, 256, 257, 1023, 1024, 1025, 4095, 4096, 4097, 16385}) {
    shapes.push_back({3, 1, n});
    shapes.push_back({2, 17, n});
  }
  for (const int64_t count : {63, 64, 65, 130}) shapes.push_back({count, 1, 6});
  for (const Shape& shape : shapes) {
    for (const int which : {0, 1}) {
      for (const Difference difference : {Difference::kCentral, Difference::kForward}) {
        Rng rng(static_cast<uint64_t>(shape.n));
        Case<TypeParam> call{.solver = draw_solver(which, shape.n, rng), .count = shape.count};
        call.settings.samples = shape.samples;
        use_noise(NoiseKind::kGumbel, call.settings);
        call.settings.difference = difference;
        call.settings.output = shape.n % 2 ? Output::kMean : Output::kSamples;
        call.settings.target = AdaptiveTarget{};
        call.draw_theta(rng);
        call.draw_dy(rng);
        const Outcome<TypeParam> expected = run_plainly(call);
        expect_same(run_fused(call), expected, "fused " + call.text());
        expect_same(run_staged(call), expected, "staged " + call.text());
        if (this->HasFailure()) return;
      }
    }
  }
}

TYPED_TEST(EstimatorTest, ThreadsDoNotShow) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Rng rng(seed);
    auto call = draw_case<TypeParam>(rng, 90, 70, 40);
    call.count = 37 + static_cast<int64_t>(seed);
    call.settings.samples = 40;
    call.mask.resize(0);
    call.k.clear();
    call.draw_theta(rng);
    call.draw_dy(rng);
    const Outcome<TypeParam> expected = run_fused(call);
    for (const int threads : {2, 3, 8}) {
      expect_same(run_fused(call, thread_pool(threads)), expected,
                  std::to_string(threads) + " threads: " + call.text());
      expect_same(run_staged(call, thread_pool(threads)), expected,
                  std::to_string(threads) + " threads, staged: " + call.text());
      if (this->HasFailure()) return;
    }
  }
}

TYPED_TEST(EstimatorTest, AnExampleDoesNotSeeTheRestOfItsBatch) {
  int tried = 0;
  for (uint64_t seed = 0; seed < 200; ++seed) {
    Rng rng(seed);
    auto call = draw_case<TypeParam>(rng, 6, 5, 30);
    const auto* adaptive = std::get_if<AdaptiveTarget>(&call.settings.target);
    if (adaptive != nullptr && adaptive->scope == AdaptiveTarget::Scope::kBatch) continue;
    ++tried;
    const Outcome<TypeParam> before = run_fused(call);
    const int64_t kept = uniform(rng, 0, call.count - 1);
    call.draw_theta(rng, 0, kept);
    call.draw_dy(rng, 0, kept);
    call.count = kept + 1;
    call.theta.resize(static_cast<size_t>(call.count * call.n()));
    const Outcome<TypeParam> after = run_fused(call);
    const auto last = [&](const std::vector<TypeParam>& values, int64_t per_example) {
      const auto* begin = values.data() + kept * per_example;
      return std::vector<TypeParam>(begin, begin + per_example);
    };
    expect_same(last(after.z, call.rows() * call.n()), last(before.z, call.rows() * call.n()), "z",
                call.text());
    expect_same(last(after.dtheta, call.n()), last(before.dtheta, call.n()), "dtheta", call.text());
    if (this->HasFailure()) return;
  }
  EXPECT_GT(tried, 100);
}

TYPED_TEST(EstimatorTest, AMaskedEntryIsAsGoodAsAbsent) {
  // Noise belongs to the element, so entries masked at the end of a row change nothing else.
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Rng rng(seed);
    auto call = draw_case<TypeParam>(rng, 3, 4, 20);
    const auto* topk = call.solver.template get_if<TopK>();
    if (topk == nullptr && !call.solver.template is<Argmax>()) continue;
    call.mask.resize(0);
    const int64_t n = call.n(), more = 1 + static_cast<int64_t>(seed % 9);
    auto padded = call;
    padded.solver = Argmax{.n = n + more};
    if (topk != nullptr) padded.solver = TopK{.n = n + more, .k = topk->k};
    auto pad = [&](const std::vector<TypeParam>& rows, TypeParam filler) {
      std::vector<TypeParam> result;
      for (size_t i = 0; i < rows.size(); ++i) {
        result.push_back(rows[i]);
        if ((static_cast<int64_t>(i) + 1) % n == 0) {
          result.insert(result.end(), static_cast<size_t>(more), filler);
        }
      }
      return result;
    };
    const auto nan = std::numeric_limits<TypeParam>::quiet_NaN();
    padded.theta = pad(call.theta, nan);
    padded.dy = pad(call.dy, nan);
    padded.mask.resize(padded.theta.size());
    for (size_t i = 0; i < padded.mask.size(); ++i) {
      padded.mask[i] = static_cast<int64_t>(i) % (n + more) < n;
    }
    const Outcome<TypeParam> expected = run_fused(call), got = run_fused(padded);
    if (std::none_of(expected.z.begin(), expected.z.end(), [](auto z) { return std::isnan(z); })) {
      expect_same(got.z, pad(expected.z, 0), "z", call.text());
    }
    // A NaN row is NaN throughout, masked entries included; their gradient is zero all the same.
    expect_same(got.dtheta, pad(expected.dtheta, 0), "dtheta", call.text());
    EXPECT_EQ(got.report.changes.entries, expected.report.changes.entries);
    if (this->HasFailure()) return;
  }
}

}  // namespace
}  // namespace aimle::cases
