// Checks at the boundary: misuse throws std::invalid_argument with a message that names the
// function, the argument, its value and what is allowed.
//
//   AIMLE_CHECK(0 <= k && k <= n, "[aimle::topk] expected 0 <= k <= n but got k=", k, ", n=", n);
#pragma once

#include <sstream>
#include <stdexcept>

namespace aimle::detail {

template <class... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void throw_invalid_argument(const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw std::invalid_argument(message.str());
}

}  // namespace aimle::detail

#define AIMLE_CHECK(condition, ...)                         \
  do {                                                      \
    if (!(condition)) [[unlikely]]                          \
      ::aimle::detail::throw_invalid_argument(__VA_ARGS__); \
  } while (false)
