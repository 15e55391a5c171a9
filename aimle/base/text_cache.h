// What a text means, parsed once: the same text gives the same object.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace aimle {

/// For any number of threads. There must be one cache for a type `Value`.
template <class Value>
class TextCache {
 public:
  using Pointer = std::shared_ptr<const Value>;

  /// `parse(text)`, or what it returned before for this text.
  template <class Parse>
  Pointer get(std::string_view text, Parse parse) {
    // The text of the last call is mostly that of this one.
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
  /// Texts that change at every call would fill the memory: the cache then starts anew.
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
