// One step of the Fruchterman-Reingold layout, as in networkx.
//
// Vertices repel each other, neighbours attract each other, and every vertex moves a fixed distance
// along its force (Fruchterman & Reingold, "Graph drawing by force-directed placement", 1991). With
// n vertices at p_i in the plane, adjacency A, k = sqrt(1/n), t = 0.1 max(range of x, range of y):
//
//   delta_ij = p_i - p_j,   d_ij = max(|delta_ij|, 0.01)
//   force_i  = sum_j delta_ij (k^2 / d_ij^2 - A_ij d_ij / k)
//   p_i     += force_i t / length(|force_i|)
//   then the mean is subtracted and everything divided by the largest |coordinate|
//
// This is networkx.spring_layout(graph, pos=p, iterations=1, threshold=1e-10). A force shorter than
// 0.01 is treated as 0.1 up to networkx 3.5, which generated the data of the paper, and as 0.01
// from 3.6 on. Sums run over j in ascending order, and the only libm function is the square root,
// so the bits are the same everywhere. O(n^2).
#pragma once

#include <cstdint>
#include <span>

namespace aimle::experiments::nri {

enum class ShortForce { kTenth, kHundredth };

/// Moves `x` and `y` ([n] each) by one step; `adjacency` is [n, n], 0 or 1, symmetric.
void layout_step(std::span<const uint8_t> adjacency, std::span<double> x, std::span<double> y,
                 ShortForce rule = ShortForce::kTenth);

}  // namespace aimle::experiments::nri
