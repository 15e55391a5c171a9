// Operations that combine the values of a group's threads.
#pragma once

#include "aimle/base/host_device.h"

namespace aimle {

struct Plus {
  AIMLE_HD double operator()(double a, double b) const { return a + b; }
};
struct Lower {
  AIMLE_HD double operator()(double a, double b) const { return a < b ? a : b; }
};
struct Higher {
  AIMLE_HD double operator()(double a, double b) const { return a < b ? b : a; }
};

}  // namespace aimle
