// The kernels of the encoder's layer of links, run on the host.
#include "experiments/nri/meeting_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace aimle::experiments::nri {
namespace {

struct Case {
  MeetingSizes sizes;
  bool links_have_inputs;
  std::mt19937 random{1};
  std::vector<float> of_nodes = values(2 * sizes.graphs * sizes.vertices);
  std::vector<float> of_links = values(links());
  std::vector<float> bias = values(1);
  std::vector<float> dy = values(links());

  int64_t links() const { return sizes.graphs * sizes.vertices * (sizes.vertices - 1); }

  std::vector<float> values(int64_t rows) {
    std::normal_distribution<float> normal;
    std::vector<float> result(static_cast<size_t>(rows * sizes.columns));
    for (float& value : result) value = normal(random);
    return result;
  }

  static std::vector<float> unset(const std::vector<float>& like) {
    return std::vector<float>(like.size(), std::numeric_limits<float>::quiet_NaN());
  }

  /// visit(link, sender, receiver, column) with indices of entries, for every link's entries.
  template <class Visit>
  void each(const Visit& visit) const {
    const auto columns = static_cast<size_t>(sizes.columns);
    const auto vertices = static_cast<size_t>(sizes.vertices);
    const size_t receivers = static_cast<size_t>(sizes.graphs) * vertices * columns;
    size_t link = 0;
    for (size_t graph = 0; graph < static_cast<size_t>(sizes.graphs); ++graph) {
      for (size_t r = 0; r < vertices; ++r) {
        for (size_t s = 0; s < vertices; ++s) {
          if (s == r) continue;
          for (size_t c = 0; c < columns; ++c, ++link) {
            visit(link, (graph * vertices + s) * columns + c,
                  receivers + (graph * vertices + r) * columns + c, c);
          }
        }
      }
    }
  }
};

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const bool links : {false, true}) {
    for (const int64_t columns : {1, 32, 40}) {
      for (const int64_t vertices : {2, 5, 10, 16}) {
        result.push_back({.sizes = {.graphs = 3, .vertices = vertices, .columns = columns},
                          .links_have_inputs = links});
      }
    }
  }
  return result;
}

TEST(MeetingKernel, LinksGetTheSumOfTheirInputs) {
  for (const Case& test : cases()) {
    std::vector<float> y = Case::unset(test.dy);
    meet_on_device(test.sizes,
                   {.of_nodes = test.of_nodes.data(),
                    .of_links = test.links_have_inputs ? test.of_links.data() : nullptr,
                    .bias = test.bias.data()},
                   y.data(), nullptr);
    test.each([&](size_t link, size_t sender, size_t receiver, size_t column) {
      double x = test.of_nodes[sender] + double{test.of_nodes[receiver]} + test.bias[column];
      if (test.links_have_inputs) x += test.of_links[link];
      EXPECT_NEAR(y[link], x > 0 ? x : std::expm1(x), 1e-5) << link;
    });
  }
}

TEST(MeetingKernel, GradientsAreSumsOverLinks) {
  for (const Case& test : cases()) {
    std::vector<float> y = test.of_links;  // any outputs of ELU
    for (float& value : y) value = value > 0 ? value : std::expm1(value);
    std::vector<float> d_nodes = Case::unset(test.of_nodes), d_links = Case::unset(y);
    meet_backward_on_device(
        test.sizes, test.dy.data(), y.data(),
        {.of_nodes = d_nodes.data(), .of_links = test.links_have_inputs ? d_links.data() : nullptr},
        nullptr);
    std::vector<double> expected(d_nodes.size());
    test.each([&](size_t link, size_t sender, size_t receiver, size_t) {
      const double gradient = test.dy[link] * (y[link] > 0 ? 1.0 : y[link] + 1.0);
      expected[sender] += gradient;
      expected[receiver] += gradient;
      if (test.links_have_inputs) EXPECT_NEAR(d_links[link], gradient, 1e-6) << link;
    });
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(d_nodes[i], expected[i], 1e-5) << i;
  }
}

}  // namespace
}  // namespace aimle::experiments::nri
