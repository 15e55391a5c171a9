#include "experiments/engine/options.h"

#include <gtest/gtest.h>

#include <string>

#include "experiments/process/failure.h"
#include "tests/message_of.h"

namespace aimle::experiments {
namespace {

TEST(Options, TakeTheTypeOfTheirDefault) {
  const Option whole = {.name = "k", .value = 3, .low = 1, .high = 9};
  EXPECT_EQ(whole.parse("7"), Json(7));
  EXPECT_EQ(message_of<Failure>([&] { whole.parse("1.5"); }),
            "expected a whole number >= 1 and <= 9 but got '1.5'");
  EXPECT_NE(message_of<Failure>([&] { whole.parse("10"); }), "");
  const Option number = {.name = "lr", .value = 0.5};
  EXPECT_EQ(number.parse("1e-3"), Json(1e-3));
  EXPECT_EQ(message_of<Failure>([&] { number.parse("nan"); }), "expected a number but got 'nan'");
  const Option text = {.name = "noise", .value = "", .verify = [](const std::string& given) {
                         if (given != "gumbel") throw Failure("no noise '" + given + "'");
                       }};
  EXPECT_EQ(text.parse("gumbel"), Json("gumbel"));
  EXPECT_EQ(text.parse(""), Json(""));
  EXPECT_EQ(
      message_of<Failure>([&] { Settings({text}).set("noise", Json("pink"), Origin::kUser); }),
      "option noise: no noise 'pink'");
  const Option flag = {.name = "hard", .value = false};
  EXPECT_EQ(flag.parse("true"), Json(true));
  const Option choice = {.name = "device", .value = "cpu", .choices = {"cpu", "cuda"}};
  EXPECT_NE(message_of<Failure>([&] { choice.parse("cuba"); }).find("did you mean 'cuda'"),
            std::string::npos);
}

TEST(Options, LaterOriginsPrevail) {
  Settings settings({{.name = "k", .value = 3}, {.name = "lr", .value = 0.5}});
  settings.apply(Preset{.name = "paper", .values = {{"k", 5}, {"lr", 2}}});
  EXPECT_EQ(settings.get<int64_t>("k"), 5);
  EXPECT_EQ(settings.get<double>("lr"), 2.0);
  settings.set("k", std::string("8"), Origin::kUser);
  EXPECT_EQ(settings.get<int64_t>("k"), 8);
  EXPECT_EQ(settings.origin("k"), Origin::kUser);
  EXPECT_EQ(settings.origin("lr"), Origin::kPreset);
  Settings copy({{.name = "k", .value = 3}, {.name = "lr", .value = 0.5}});
  copy.apply(settings.to_json());
  EXPECT_EQ(copy.to_json(), settings.to_json());
  EXPECT_NE(message_of<Failure>([&] {
              settings.set("lt", Json(1.0), Origin::kUser);
            }).find("did you mean 'lr'"),
            std::string::npos);
}

}  // namespace
}  // namespace aimle::experiments
