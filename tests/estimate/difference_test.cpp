#include "aimle/estimate/difference.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/estimate/cases.h"

namespace aimle::cases {
namespace {

/// An example of three entries with two samples, and the solutions of both sides.
struct Given {
  PassSettings settings{.samples = 2, .target = AdaptiveTarget::paper()};
  std::vector<double> theta = {0, 0, 0};
  std::valarray<bool> mask;
  std::vector<double> left = {1, 0, 0, 0, 1, 0};
  std::vector<double> right = {0, 1, 0, 0, 1, 0};
  std::vector<double> lambda = {0.5, 0.5, 0.5, 0.5};  // two samples, the example's, the reported
  std::vector<uint8_t> counted = {1, 1};
};

struct Result {
  std::vector<double> dtheta;
  BackwardReport report;
};

Result difference_of(const Given& given) {
  Result result{.dtheta = {9, 9, 9}};
  const Examples<double> examples{.count = 1,
                                  .n = 3,
                                  .theta = given.theta.data(),
                                  .mask = given.mask.size() != 0 ? &given.mask[0] : nullptr};
  result.report =
      difference(given.settings, examples, given.left.data(), given.right.data(),
                 given.lambda.data(), given.counted.data(), result.dtheta.data(), sequential());
  return result;
}

TEST(Difference, SumsOverSamplesAndDividesByTwoLambda) {
  Given given;
  EXPECT_EQ(difference_of(given).dtheta, (std::vector<double>{1, -1, 0}));
  given.settings.difference = Difference::kForward;
  EXPECT_EQ(difference_of(given).dtheta, (std::vector<double>{2, -2, 0}));
}

TEST(Difference, ACostsGradientHasTheOtherSign) {
  Given given;
  given.settings.sense = Sense::kMin;
  EXPECT_EQ(difference_of(given).dtheta, (std::vector<double>{-1, 1, 0}));
}

TEST(Difference, AMeanDividesBySamples) {
  Given given;
  given.settings.output = Output::kMean;
  given.lambda = {0.5, 0.5, 0.5};
  given.counted = {1};
  const Result result = difference_of(given);
  EXPECT_EQ(result.dtheta, (std::vector<double>{0.5, -0.5, 0}));
  EXPECT_EQ(result.report.changes.samples, 2);
}

TEST(Difference, EverySampleMayHaveItsOwnStep) {
  Given given;
  given.settings.target = AdaptiveTarget{.scope = AdaptiveTarget::Scope::kSample};
  given.left = {1, 0, 0, 0, 1, 0};
  given.right = {0, 1, 0, 0, 0, 1};
  given.lambda = {0.25, 2.0, 1.0, 9.0};
  EXPECT_EQ(difference_of(given).dtheta, (std::vector<double>{2, -2 + 0.25, -0.25}));
}

TEST(Difference, TheReferenceIsTooLargeByTheRootOfSamples) {
  Given given;
  given.settings.target = AdaptiveTarget::paper();
  std::get<AdaptiveTarget>(given.settings.target).reference = true;
  EXPECT_DOUBLE_EQ(difference_of(given).dtheta[0], std::sqrt(2.0));
}

TEST(Difference, CountsWhatChanged) {
  const Changes changes = difference_of({}).report.changes;
  EXPECT_EQ(changes.nonzeros, 2);
  EXPECT_EQ(changes.samples, 2);
  EXPECT_EQ(changes.changed, 1);
  EXPECT_EQ(changes.zeros, 1);
  EXPECT_EQ(changes.entries, 3);
  EXPECT_EQ(difference_of({}).report.lambda_mean, 0.5);
}

TEST(Difference, SamplesWithoutAGradientAreNotCounted) {
  Given given;
  given.counted = {0, 1};
  const Changes changes = difference_of(given).report.changes;
  EXPECT_EQ(changes.nonzeros, 0);
  EXPECT_EQ(changes.samples, 1);
  EXPECT_EQ(changes.changed, 0);
}

TEST(Difference, AZeroStepGivesAZeroGradient) {
  Given given;
  given.right = given.left;
  given.lambda = {0, 0, 0, 0};
  EXPECT_EQ(difference_of(given).dtheta, (std::vector<double>{0, 0, 0}));
}

TEST(Difference, ANaNSolutionReachesTheGradientButNotTheCount) {
  Given given;
  for (size_t j = 0; j < 3; ++j) given.right[j] = std::numeric_limits<double>::quiet_NaN();
  for (const double lambda : {0.0, 0.5}) {
    given.lambda = {lambda, lambda, lambda, lambda};
    const Result result = difference_of(given);
    for (const double g : result.dtheta) EXPECT_TRUE(std::isnan(g));
    EXPECT_EQ(result.report.changes.samples, 1);
    EXPECT_EQ(result.report.changes.nonzeros, 0);
    EXPECT_EQ(result.report.changes.changed, 0);
  }
}

TEST(Difference, EntriesThatCannotMoveHaveNoGradient) {
  Given given;
  given.theta[0] = -std::numeric_limits<double>::infinity();
  given.mask = std::valarray<bool>{true, false, true};
  const Result result = difference_of(given);
  EXPECT_EQ(result.dtheta, (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(result.report.changes.entries, 1);
  EXPECT_EQ(result.report.changes.zeros, 1);
}

TEST(Difference, ASumOfManySamplesIsExact) {
  Given given;
  given.settings.samples = 3000;
  given.left.clear();
  given.right.clear();
  for (int s = 0; s < 3000; ++s) {
    given.left.insert(given.left.end(), {1, 0, s % 3 == 0 ? 1. : 0.});
    given.right.insert(given.right.end(), {0, 1, 0});
  }
  given.lambda.assign(3002, 1.0 / 3.0);
  given.counted.assign(3000, 1);
  const double two_lambda = 2.0 / 3.0;
  EXPECT_EQ(difference_of(given).dtheta,
            (std::vector<double>{3000 / two_lambda, -3000 / two_lambda, 1000 / two_lambda}));
}

}  // namespace
}  // namespace aimle::cases
