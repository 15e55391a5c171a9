// Reads lines "RULE n A_00 ... A_nn x_0 y_0 ... x_n y_n" (RULE: tenth or hundredth) and prints the
// positions after one layout step, x_0 y_0 ..., with all digits.
#include "experiments/nri/layout.h"

#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

int main() {
  using aimle::experiments::nri::ShortForce;
  std::string rule;
  size_t n = 0;
  std::cout << std::setprecision(17);
  while (std::cin >> rule >> n) {
    std::vector<uint8_t> adjacency(n * n);
    for (uint8_t& linked : adjacency) {
      int value = 0;
      std::cin >> value;
      linked = static_cast<uint8_t>(value);
    }
    std::vector<double> x(n);
    std::vector<double> y(n);
    for (size_t i = 0; i < n; ++i) std::cin >> x[i] >> y[i];
    aimle::experiments::nri::layout_step(
        adjacency, x, y, rule == "tenth" ? ShortForce::kTenth : ShortForce::kHundredth);
    for (size_t i = 0; i < n; ++i) std::cout << x[i] << ' ' << y[i] << ' ';
    std::cout << '\n';
  }
}
