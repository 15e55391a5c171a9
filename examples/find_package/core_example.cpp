// Only the core, without Torch: the two best of five scores, in each of two rows.
#include <cstdio>
#include <vector>

#include "aimle/map/topk.h"

int main() {
  const aimle::TopK top2{.n = 5, .k = 2};
  const std::vector<float> scores = {0.1F, 0.9F, 0.3F, 0.8F, 0.2F,  //
                                     0.5F, 0.5F, 0.5F, 0.5F, 0.5F};
  std::vector<float> z(scores.size());
  std::vector<aimle::Status> status(2);

  aimle::solve(top2,
               aimle::Rows<float>{
                   .count = 2, .scores = scores.data(), .z = z.data(), .status = status.data()});

  for (size_t i = 0; i < z.size(); ++i) {
    std::printf("%.0f%c", z[i], (i + 1) % 5 == 0 ? '\n' : ' ');
  }
}
