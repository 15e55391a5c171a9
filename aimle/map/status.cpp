#include "aimle/map/map.h"

namespace aimle {

std::string_view describe(Status status) {
  switch (status) {
    case Status::kOk:
      return "solved";
    case Status::kNaN:
      return "a score is NaN";
    case Status::kBadK:
      return "k is negative or larger than the row";
    case Status::kTooFewEntries:
      return "mask and -inf leave too few entries to choose from";
    case Status::kDisconnected:
      return "mask, infinite costs or the shape leave no connected solution";
    case Status::kNegativeCost:
      return "a cost is negative";
    case Status::kBadData:
      return "the instance's data are invalid: a weight or a capacity is negative, or a graph has "
             "a vertex or an edge that it should not have";
    case Status::kTooLarge:
      return "the instance is too large for an exact solution: scale its weights down, or raise "
             "the "
             "solver's max_capacity if the capacity is above it";
  }
  return "unknown status";
}

}  // namespace aimle
