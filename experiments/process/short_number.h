// Numbers with few digits, for display.
#pragma once

#include <cstdio>
#include <string>

namespace aimle::experiments {

/// 0.12346 with five digits; 1e-07 and nan as C writes them.
inline std::string short_number(double value, int digits = 6) {
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

}  // namespace aimle::experiments
