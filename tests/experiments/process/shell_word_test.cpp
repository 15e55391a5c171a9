#include "experiments/process/shell_word.h"

#include <gtest/gtest.h>

namespace aimle::experiments {
namespace {

TEST(ShellWord, LeavesOrdinaryFoldersAsTheyAre) {
  for (const char* word : {"runs/dvae", "/tmp/a_b-c.d", "--lr=1e-3", "lr=1,2", "größe"}) {
    EXPECT_EQ(shell_word(word), word);
  }
}

TEST(ShellWord, QuotesWhatAShellWouldNotPassOn) {
  EXPECT_EQ(shell_word("my runs"), "'my runs'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word("$HOME/*"), "'$HOME/*'");
  EXPECT_EQ(shell_word("~"), "'~'");
  EXPECT_EQ(shell_word(""), "''");
}

}  // namespace
}  // namespace aimle::experiments
