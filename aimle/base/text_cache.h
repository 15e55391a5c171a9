// A cache of parsed text: the same text returns the same object.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace aimle {

/// Thread-safe. There must be only one cache per type `Value`.
template <class Value>
class TextCache {
 public:
  using Pointer = std::shared_ptr<const Value>;

  /// `parse(text)`, or its earlier result for this text.
  template <class Parse>
  Pointer get(std::string_view text, Parse parse) {
    // The text is mostly the same as in the previous call.
    thread_local std::string last_text;
    thread_local Pointer last;
    if (last != nullptr && last_text == text) return last;
    std::string key(text);
    Pointer found = find(key);
    if (found == nullptr) {
      found = parse(text);
      insert(key, found);
    }
    last_text = std::move(key);
    last = found;
    return found;
  }

 private:
  /// Texts that change at every call would fill the memory: the cache is then cleared.
  static constexpr size_t kMostTexts = 1024;

  Pointer find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto known = parsed_.find(key);
    return known == parsed_.end() ? nullptr : known->second;
  }
  void insert(const std::string& key, const Pointer& value) {
    const std::lock_guard lock(mutex_);
    if (parsed_.size() >= kMostTexts) parsed_.clear();
    parsed_.emplace(key, value);
  }

  std::mutex mutex_;
  std::unordered_map<std::string, Pointer> parsed_;
};

}  // namespace aimle
