#include "cli/messages.h"

#include <c10/util/Exception.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <ios>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "aimle/base/shown_value.h"
#include "experiments/engine/processes.h"
#include "experiments/process/bytes_in_json.h"
#include "experiments/process/terminal.h"

namespace aimle::cli {
namespace {

constexpr size_t kLongestWord = 500;  // longer ones are not paths

/// "[aimle::topk] expected" -> "expected"
std::string without_function_names(std::string text) {
  for (size_t begin = text.find("[aimle"); begin != std::string::npos;
       begin = text.find("[aimle", begin)) {
    const size_t end = text.find("] ", begin);
    if (end == std::string::npos) break;
    text.erase(begin, end + 2 - begin);
  }
  return text;
}

template <class T>
bool is(const std::exception& error) {
  return dynamic_cast<const T*>(&error) != nullptr;
}

std::string with_short_words(const std::string& text) {
  std::string result;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    result += word.size() > kLongestWord ? shown_value(word) : word;
    if (end < text.size()) result += ' ';
    begin = end + 1;
  }
  return result;
}

}  // namespace

std::string own_words(const std::string& message) {
  std::string text = without_function_names(message);
  // The setting's name in Python.
  for (size_t at = text.find("lambda_ "); at != std::string::npos; at = text.find("lambda_ ")) {
    text.erase(at + std::strlen("lambda"), 1);
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return with_short_words(text);
}

std::string describe(const std::exception& error) {
  if (is<std::bad_alloc>(error) || is<std::length_error>(error) ||
      is<c10::OutOfMemoryError>(error)) {
    return "out of memory";
  }
  if (const auto* file = dynamic_cast<const std::filesystem::filesystem_error*>(&error)) {
    return "cannot use " + file->path1().string() + ": " + file->code().message();
  }
  if (const auto* json = dynamic_cast<const nlohmann::json::exception*>(&error)) {
    return "a file in the folder is not in this program's format: " +
           experiments::json_problem(*json);
  }
  if (is<std::ios_base::failure>(error)) {
    return "a file could not be read: check that it is not a folder and that the disk works";
  }
  if (const auto* torch = dynamic_cast<const c10::Error*>(&error)) {
    const std::string text = torch->what_without_backtrace();
    if (text.find("DefaultCPUAllocator") != std::string::npos) return "out of memory";
    return text.substr(0, text.find('\n'));
  }
  return error.what();
}

int complain(const std::string& message, int code) {
  // Of several processes each is told of wrong usage and of signals; the first one says it.
  if (code != EXIT_FAILURE && !experiments::processes().is_first()) return code;
  const char* start = experiments::is_live_terminal(STDERR_FILENO) ? "\r\033[K" : "";
  std::fprintf(stderr, "%saimle: %s\n", start, own_words(message).c_str());
  return code;
}

int close_output(int code) {
  const bool failed_before = std::ferror(stdout) != 0;
  errno = 0;
  const bool failed = std::fclose(stdout) != 0;
  if (!failed && !failed_before) return code;
  if (errno == EPIPE) return 128 + SIGPIPE;
  const std::string reason = errno == 0 ? "" : std::string(": ") + std::strerror(errno);
  return complain("cannot write to standard output" + reason, code == 0 ? EXIT_FAILURE : code);
}

}  // namespace aimle::cli
