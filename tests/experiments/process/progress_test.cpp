#include "experiments/process/progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>

#include "experiments/process/terminal.h"

namespace aimle::experiments {
namespace {

TEST(SpellSeconds, InTheUnitsOfAReader) {
  EXPECT_EQ(spell_seconds(0.4), "0 s");
  EXPECT_EQ(spell_seconds(75), "1 min 15 s");
  EXPECT_EQ(spell_seconds(7260), "2 h 1 min");
}

TEST(SpellRoughly, HasNoMoreDigitsThanAnEstimate) {
  EXPECT_EQ(spell_roughly(3), "5 s");
  EXPECT_EQ(spell_roughly(57), "55 s");
  EXPECT_EQ(spell_roughly(58), "1 min");
  EXPECT_EQ(spell_roughly(75), "1 min");
  EXPECT_EQ(spell_roughly(3500), "58 min");
  EXPECT_EQ(spell_roughly(3580), "1 h");
  EXPECT_EQ(spell_roughly(5400), "1.5 h");
  EXPECT_EQ(spell_roughly(200'000), "55.6 h");
}

TEST(TimeLeft, LeavesOutWhatCameBeforeTheFirstReport) {
  TimeLeft left(1000);
  const TimeLeft::Clock::time_point loaded = {};
  EXPECT_EQ(left.seconds(1, loaded), std::nullopt);  // however long it took
  EXPECT_DOUBLE_EQ(left.seconds(11, loaded + std::chrono::seconds(5)).value(), 0.5 * 989);
  EXPECT_DOUBLE_EQ(left.seconds(1000, loaded + std::chrono::seconds(500)).value(), 0.0);
}

TEST(ProgressLine, FitsEveryTerminal) {
  const ProgressLine line = {.title = "train warcraft",
                             .share = 0.25,
                             .left = "1 h 5 min left",
                             .note = "lambda=10 seed 3, epoch 12, loss 0.1234, alpha 0.5"};
  EXPECT_EQ(fit_progress_line(line, 200),
            "train warcraft     ███████░░░░░░░░░░░░░░░░░░░░░  25 %  1 h 5 min left  lambda=10 "
            "seed 3, epoch 12, loss 0.1234, alpha 0.5");
  EXPECT_EQ(fit_progress_line(line, 79),
            "train warcraft     ██░░░░░░  25 %  1 h 5 min left  lambda=10 seed 3, epoch 12,…");
  EXPECT_EQ(fit_progress_line(line, 40), "train warcraft  25 %  1 h 5 min left  l…");
  for (size_t columns = 1; columns < 150; ++columns) {
    EXPECT_LE(columns_of(fit_progress_line(line, columns)), columns);
  }
}

TEST(Terminal, WrapsAtSpaces) {
  EXPECT_EQ(wrap("one two three", 7), "one two\nthree");
  EXPECT_EQ(wrap("one two three", 9, 2, 4), "one\n  two\n  three");
  EXPECT_EQ(wrap("unbreakable x", 4), "unbreakable\nx");
  EXPECT_EQ(wrap("a\nb", 80, 1), "a\n b");
  EXPECT_EQ(cut_to("ÄÖÜ", 3), "ÄÖÜ");
  EXPECT_EQ(cut_to("ÄÖÜß", 3), "ÄÖ…");
}

}  // namespace
}  // namespace aimle::experiments
