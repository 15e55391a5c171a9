#include "experiments/l2x/reviews.h"

#include <algorithm>

#include "aimle/base/check.h"
#include "experiments/data/numpy_random_state.h"

namespace aimle::experiments::l2x {

int32_t Vocabulary::add(std::string_view word) {
  if (const auto found = ids_.find(word); found != ids_.end()) return found->second;
  const int32_t id = size();
  words_.emplace_back(word);
  ids_.emplace(words_.back(), id);
  return id;
}

int32_t Vocabulary::find(std::string_view word, int32_t otherwise) const {
  const auto found = ids_.find(word);
  return found == ids_.end() ? otherwise : found->second;
}

std::string_view Vocabulary::word(int32_t id) const {
  constexpr std::array<std::string_view, kFirstWord> kSpecial{"<PAD>", "<START>", "<UNK>"};
  AIMLE_CHECK(0 <= id && id < size(), "[aimle l2x] expected a word id below ", size(), " but got ",
              id);
  return id < kFirstWord ? kSpecial[id] : words_[id - kFirstWord];
}

void Reviews::add(std::span<const int32_t> ids, float rating) {
  words.insert(words.end(), ids.begin(), ids.end());
  starts.push_back(static_cast<int64_t>(words.size()));
  ratings.push_back(rating);
}

void write_rows(const Reviews& reviews, std::span<const int64_t> indices, Rules rules,
                int64_t length, int64_t* ids, bool* real) {
  for (size_t i = 0; i < indices.size(); ++i) {
    const std::span<const int32_t> words = reviews.review(indices[i]);
    const auto count = std::min(length, static_cast<int64_t>(words.size()));
    const int64_t first = rules == Rules::kReference ? length - count : 0;
    int64_t* row = ids + static_cast<int64_t>(i) * length;
    std::fill(row, row + length, kPad);
    std::copy(words.begin(), words.begin() + count, row + first);
    if (real) {
      bool* mark = real + static_cast<int64_t>(i) * length;
      std::fill(mark, mark + length, rules == Rules::kReference);
      std::fill(mark + first, mark + first + count, true);
    }
  }
}

Split split_heldout(int64_t count, uint32_t seed) {
  const std::vector<int64_t> order = RandomState(seed).permutation(count);
  const auto middle = order.begin() + (count + 1) / 2;
  return {.test = {order.begin(), middle}, .validation = {middle, order.end()}};
}

void SubsetPrecision::add(const Reviews& reviews, int64_t review, std::span<const float> chosen) {
  const std::span<const int32_t> words = reviews.review(review);
  const std::vector<WordRange>& ranges = reviews.rationales.at(static_cast<size_t>(review));
  const auto length = static_cast<int64_t>(chosen.size());
  const auto count = std::min(length, static_cast<int64_t>(words.size()));
  const int64_t first = rules_ == Rules::kReference ? length - count : 0;
  double selected = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (chosen[first + i] == 0) continue;
    if (rules_ == Rules::kReference && words[i] == kPad) continue;
    ++selected;
    const auto holding = static_cast<double>(std::ranges::count_if(
        ranges, [&](const WordRange& range) { return range.begin <= i && i < range.end; }));
    correct_ += rules_ == Rules::kReference ? holding : std::min(holding, 1.0);
  }
  total_ += rules_ == Rules::kReference ? std::max(selected, static_cast<double>(k_)) : selected;
}

}  // namespace aimle::experiments::l2x
