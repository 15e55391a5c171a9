// The kernels of the rollout over trees, run on the host.
#include "experiments/nri/rollout_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace aimle::experiments::nri {
namespace {

using Floats = std::vector<float>;
using Indices = std::vector<int64_t>;

/// Random trees, and everything that the kernels read.
struct Case {
  RolloutShape shape;
  std::mt19937 random;
  Floats links, sender;
  Indices receiver_of, sender_of;  // of the links of a graph
  Indices place, sent, ends;       // of the kernel

  Case(int64_t graphs, int64_t n, int64_t h)
      : shape{.graphs = graphs, .vertices = n, .hidden = h}, random(static_cast<unsigned>(n + h)) {
    const int64_t count = n * (n - 1);
    for (int64_t r = 0; r < n; ++r) {
      for (int64_t s = 0; s < n; ++s) {
        if (s == r) continue;
        receiver_of.push_back(r);
        sender_of.push_back(s);
        for (int64_t v = 0; v < n; ++v) sender.push_back(v == s ? 1.0F : 0.0F);
      }
    }
    links.assign(shape.links, 0.0F);
    for (int64_t b = 0; b < graphs; ++b) {
      for (int64_t j = 1; j < n; ++j) {
        const auto i = static_cast<int64_t>(random() % j);
        for (int64_t e = 0; e < count; ++e) {
          const std::set<int64_t> pair = {receiver_of[e], sender_of[e]};
          if (pair == std::set<int64_t>{i, j}) links[b * count + e] = 1.0F;
        }
      }
    }
    place.assign(shape.links, -1);
    sent.assign(shape.links, -1);
    ends.assign(2 * shape.links, -1);
    sort_links_on_device(shape, links.data(), sender.data(), place.data(), sent.data(), ends.data(),
                         nullptr);
  }

  Floats values(int64_t count) {
    std::normal_distribution<float> normal;
    Floats result(count);
    for (float& value : result) value = normal(random);
    return result;
  }

  /// Outputs of a layer: about half of them zero.
  Floats outputs(int64_t count) {
    Floats result = values(count);
    for (float& value : result) value = std::max(value, 0.0F);
    return result;
  }

  bool linked(int64_t sorted) const { return sorted >= shape.unlinked; }
};

/// First layers with values of chance.
struct FirstLayerValues {
  Floats weight[2], bias[2];

  explicit FirstLayerValues(Case& test) {
    for (int type = 0; type < 2; ++type) {
      weight[type] = test.values(4 * test.shape.hidden);
      bias[type] = test.values(test.shape.hidden);
    }
  }

  FirstLayers pointers() const {
    return {{weight[0].data(), weight[1].data()}, {bias[0].data(), bias[1].data()}};
  }
};

std::vector<Case> cases() {
  std::vector<Case> result;
  for (const auto& [graphs, n, h] : std::vector<std::array<int64_t, 3>>{
           {1, 2, 1}, {3, 5, 7}, {2, 7, 300}, {9, 10, 64}, {13, 3, 33}, {1, 14, 5}}) {
    result.emplace_back(graphs, n, h);
  }
  return result;
}

std::string name(const Case& test) {
  return std::to_string(test.shape.graphs) + " graphs of " + std::to_string(test.shape.vertices);
}

TEST(RolloutKernels, SortLinks) {
  for (const Case& test : cases()) {
    SCOPED_TRACE(name(test));
    const int64_t n = test.shape.vertices, count = n * (n - 1);
    int64_t next[2] = {0, test.shape.unlinked};
    for (int64_t link = 0; link < test.shape.links; ++link) {
      const int64_t graph = link / count, receiver = test.receiver_of[link % count];
      const int64_t sender = test.sender_of[link % count], p = test.place[link];
      ASSERT_EQ(p, next[test.links[link] > 0.5F ? 1 : 0]++) << link;
      ASSERT_EQ(test.ends[2 * p], graph * n + sender) << link;
      ASSERT_EQ(test.ends[2 * p + 1], graph * n + receiver) << link;
      const int64_t rank = receiver - (receiver > sender ? 1 : 0);
      ASSERT_EQ(test.sent[(graph * n + sender) * (n - 1) + rank], p) << link;
    }
    ASSERT_EQ(next[0], test.shape.unlinked);
    ASSERT_EQ(next[1], test.shape.links);
  }
}

TEST(RolloutKernels, LinksThatAreNoTreeStopTheKernel) {
  Case test(2, 5, 1);
  test.links[3] = 1 - test.links[3];
  EXPECT_THROW(sort_links_on_device(test.shape, test.links.data(), test.sender.data(),
                                    test.place.data(), test.sent.data(), test.ends.data(), nullptr),
               std::runtime_error);
}

TEST(RolloutKernels, Meet) {
  for (Case& test : cases()) {
    SCOPED_TRACE(name(test));
    const int64_t h = test.shape.hidden, all = test.shape.links;
    const Floats now = test.values(2 * test.shape.nodes);
    const FirstLayerValues layers(test);
    Floats pairs(4 * all, NAN), hidden(all * h, NAN);
    meet_on_device(test.shape, test.ends.data(), now.data(), layers.pointers(), pairs.data(),
                   hidden.data(), nullptr);
    for (int64_t p = 0; p < all; ++p) {
      for (int64_t i = 0; i < 4; ++i) {
        ASSERT_EQ(pairs[4 * p + i], now[2 * test.ends[2 * p + i / 2] + i % 2]) << p;
      }
      for (int64_t j = 0; j < h; ++j) {
        double y = layers.bias[test.linked(p)][j];
        for (int64_t i = 0; i < 4; ++i) {
          y += double{layers.weight[test.linked(p)][4 * j + i]} * pairs[4 * p + i];
        }
        ASSERT_NEAR(hidden[p * h + j], std::max(y, 0.0), 1e-5) << p << ' ' << j;
      }
    }
  }
}

TEST(RolloutKernels, See) {
  for (Case& test : cases()) {
    SCOPED_TRACE(name(test));
    const int64_t h = test.shape.hidden, nodes = test.shape.nodes, width = kOwn + h;
    const Floats now = test.values(2 * nodes), products = test.values(test.shape.links * h);
    const Floats bias[2] = {test.values(h), test.values(h)};
    Floats expected_messages;
    std::vector<double> expected(nodes * width, 0.0);
    for (int64_t v = 0; v < nodes; ++v) {
      expected[v * width] = now[2 * v];
      expected[v * width + 1] = now[2 * v + 1];
      expected[v * width + kOne] = 1;
    }
    for (int64_t p = 0; p < test.shape.links; ++p) {
      for (int64_t j = 0; j < h; ++j) {
        const float message = std::max(products[p * h + j] + bias[test.linked(p)][j], 0.0F);
        expected[test.ends[2 * p + 1] * width + kOwn + j] += message;
        expected_messages.push_back(message);
      }
    }
    Floats messages = products, seen(nodes * width, NAN);
    see_on_device(test.shape, test.place.data(), now.data(), {{bias[0].data(), bias[1].data()}},
                  messages.data(), seen.data(), nullptr);
    ASSERT_EQ(messages, expected_messages);
    for (size_t i = 0; i < seen.size(); ++i) ASSERT_NEAR(seen[i], expected[i], 1e-5) << i;
  }
}

TEST(RolloutKernels, Move) {
  for (Case& test : cases()) {
    SCOPED_TRACE(name(test));
    const int64_t h = test.shape.hidden, nodes = test.shape.nodes;
    const Floats now = test.values(2 * nodes), second = test.outputs(nodes * h);
    const Floats out2 = test.values(2 * h), bias = test.values(2);
    Floats next(2 * nodes, NAN);
    move_on_device(test.shape, now.data(), second.data(), out2.data(), bias.data(), next.data(),
                   nullptr);
    for (int64_t v = 0; v < nodes; ++v) {
      for (int64_t i = 0; i < 2; ++i) {
        double y = double{now[2 * v + i]} + bias[i];
        for (int64_t j = 0; j < h; ++j) y += double{second[v * h + j]} * out2[i * h + j];
        ASSERT_NEAR(next[2 * v + i], y, 1e-4) << v;
      }
    }
  }
}

TEST(RolloutKernels, MoveBackward) {
  for (Case& test : cases()) {
    SCOPED_TRACE(name(test));
    const int64_t h = test.shape.hidden, nodes = test.shape.nodes;
    const Floats given = test.values(2 * nodes), later = test.values(2 * nodes);
    const Floats d_seen = test.values(nodes * (kOwn + h)),
                 d_pairs = test.values(4 * test.shape.links);
    const Floats second = test.outputs(nodes * h), out2 = test.values(2 * h);
    for (const bool last : {false, true}) {
      std::vector<double> expected(given.begin(), given.end());
      for (int64_t i = 0; !last && i < 2 * nodes; ++i) {
        expected[i] += double{later[i]} + d_seen[i / 2 * (kOwn + h) + i % 2];
      }
      for (int64_t i = 0; !last && i < 4 * test.shape.links; ++i) {
        expected[2 * test.ends[i / 2] + i % 2] += d_pairs[i];
      }
      Floats d_positions(2 * nodes, NAN), d_second(nodes * h, NAN);
      NextStep next;
      if (!last) next = {later.data(), d_seen.data(), d_pairs.data()};
      move_backward_on_device(test.shape, test.place.data(), test.sent.data(), given.data(), next,
                              second.data(), out2.data(), d_positions.data(), d_second.data(),
                              nullptr);
      for (int64_t i = 0; i < 2 * nodes; ++i) ASSERT_NEAR(d_positions[i], expected[i], 1e-5) << i;
      for (int64_t i = 0; i < nodes * h; ++i) {
        const int64_t v = i / h, j = i % h;
        const double product = expected[2 * v] * out2[j] + expected[2 * v + 1] * out2[h + j];
        ASSERT_NEAR(d_second[i], second[i] > 0 ? product : 0.0, 1e-4) << i;
      }
    }
  }
}

TEST(RolloutKernels, SeeBackward) {
  for (Case& test : cases()) {
    SCOPED_TRACE(name(test));
    const int64_t h = test.shape.hidden, all = test.shape.links;
    const Floats d_seen = test.values(test.shape.nodes * (kOwn + h));
    const Floats messages = test.outputs(all * h);
    Floats d_messages(all * h, NAN);
    see_backward_on_device(test.shape, test.ends.data(), d_seen.data(), messages.data(),
                           d_messages.data(), nullptr);
    for (int64_t i = 0; i < all * h; ++i) {
      const float given = d_seen[test.ends[2 * (i / h) + 1] * (kOwn + h) + kOwn + i % h];
      ASSERT_EQ(d_messages[i], messages[i] > 0 ? given : 0.0F) << i;
    }
  }
}

TEST(RolloutKernels, MeetBackward) {
  for (Case& test : cases()) {
    SCOPED_TRACE(name(test));
    const int64_t h = test.shape.hidden, all = test.shape.links;
    const Floats hidden = test.outputs(all * h), given = test.values(all * h);
    const FirstLayerValues layers(test);
    Floats d_hidden = given, d_pairs(4 * all, NAN);
    meet_backward_on_device(test.shape, hidden.data(), layers.pointers(), d_hidden.data(),
                            d_pairs.data(), nullptr);
    for (int64_t p = 0; p < all; ++p) {
      double expected[4] = {};
      for (int64_t j = 0; j < h; ++j) {
        const int64_t at = p * h + j;
        ASSERT_EQ(d_hidden[at], hidden[at] > 0 ? given[at] : 0.0F) << p << ' ' << j;
        for (int64_t i = 0; i < 4; ++i) {
          expected[i] += double{d_hidden[at]} * layers.weight[test.linked(p)][4 * j + i];
        }
      }
      for (int64_t i = 0; i < 4; ++i) ASSERT_NEAR(d_pairs[4 * p + i], expected[i], 1e-4) << p;
    }
  }
}

TEST(RolloutKernels, SumsOfLinks) {
  for (Case& test : cases()) {
    SCOPED_TRACE(name(test));
    const int64_t h = test.shape.hidden, all = test.shape.links, steps = 3;
    const Floats pairs = test.values(steps * all * 4), d_hidden = test.values(steps * all * h);
    const Floats d_messages = test.values(steps * all * h);
    std::vector<double> expected[2];
    for (auto& sums : expected) sums.assign(6 * h, 0.0);
    for (int64_t i = 0; i < steps * all * h; ++i) {
      const int64_t row = i / h, j = i % h;
      std::vector<double>& sums = expected[test.linked(row % all)];
      for (int64_t k = 0; k < 4; ++k) sums[4 * j + k] += double{d_hidden[i]} * pairs[4 * row + k];
      sums[4 * h + j] += d_hidden[i];
      sums[5 * h + j] += d_messages[i];
    }
    Floats parts(sums_of_links_scratch(test.shape, steps), NAN);
    Floats found[2] = {Floats(6 * h, NAN), Floats(6 * h, NAN)};
    sums_of_links_on_device(test.shape, steps, pairs.data(), d_hidden.data(), d_messages.data(),
                            parts.data(), found[0].data(), found[1].data(), nullptr);
    for (int type = 0; type < 2; ++type) {
      for (int64_t i = 0; i < 6 * h; ++i) ASSERT_NEAR(found[type][i], expected[type][i], 1e-3) << i;
    }
  }
}

TEST(RolloutKernels, SumsOfNodes) {
  Case test(1, 3, 1);
  for (const auto& [rows, h] :
       std::vector<std::array<int64_t, 2>>{{1, 1}, {32, 5}, {33, 300}, {1000, 64}}) {
    SCOPED_TRACE(rows);
    const Floats d_positions = test.values(2 * rows), second = test.outputs(rows * h);
    const Floats d_second = test.values(rows * h);
    std::vector<double> expected(3 * h + 2, 0.0);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t j = 0; j < h; ++j) {
        for (int64_t i = 0; i < 2; ++i) {
          expected[i * h + j] += double{d_positions[2 * row + i]} * second[row * h + j];
        }
        expected[2 * h + 2 + j] += d_second[row * h + j];
      }
      for (int64_t i = 0; i < 2; ++i) expected[2 * h + i] += d_positions[2 * row + i];
    }
    Floats parts(sums_of_nodes_scratch(rows, h), NAN), sums(3 * h + 2, NAN);
    sums_of_nodes_on_device(rows, h, d_positions.data(), second.data(), d_second.data(),
                            parts.data(), sums.data(), nullptr);
    for (int64_t i = 0; i < 3 * h + 2; ++i) ASSERT_NEAR(sums[i], expected[i], 1e-3) << i;
  }
}

TEST(RolloutKernels, OtherHidden) {
  for (Case& test : cases()) {
    SCOPED_TRACE(name(test));
    const int64_t h = test.shape.hidden, all = test.shape.links, unlinked = test.shape.unlinked;
    const int64_t steps = 3;
    const Floats pairs = test.values(steps * all * 4);
    const FirstLayerValues layers(test);
    for (int type = 0; type < 2; ++type) {
      const int64_t of_type = type == 0 ? unlinked : all - unlinked;
      Floats hidden(steps * of_type * h, NAN);
      other_hidden_on_device(test.shape, steps, type, pairs.data(), layers.pointers(),
                             hidden.data(), nullptr);
      for (int64_t i = 0; i < steps * of_type * h; ++i) {
        const int64_t row = i / h, j = i % h, t = row / of_type;
        const int64_t p = row % of_type + (type == 0 ? 0 : unlinked);
        double y = layers.bias[1 - type][j];
        for (int64_t k = 0; k < 4; ++k) {
          y += double{layers.weight[1 - type][4 * j + k]} * pairs[4 * (t * all + p) + k];
        }
        ASSERT_NEAR(hidden[i], std::max(y, 0.0), 1e-5) << i;
      }
    }
  }
}

TEST(RolloutKernels, GainOfLinks) {
  for (Case& test : cases()) {
    SCOPED_TRACE(name(test));
    const int64_t h = test.shape.hidden, all = test.shape.links, unlinked = test.shape.unlinked;
    const int64_t steps = 3, width = kOwn + h;
    const Floats d_seen = test.values(steps * test.shape.nodes * width);
    const Floats messages = test.outputs(steps * all * h);
    const Floats others[2] = {test.outputs(steps * unlinked * h),
                              test.outputs(steps * (all - unlinked) * h)};
    Floats gain(all, NAN);
    gain_of_links_on_device(test.shape, steps, test.place.data(), d_seen.data(), messages.data(),
                            others[0].data(), others[1].data(), gain.data(), nullptr);
    for (int64_t link = 0; link < all; ++link) {
      const int64_t p = test.place[link], receiver = test.ends[2 * p + 1];
      const bool linked = test.linked(p);
      const int64_t of_type = linked ? all - unlinked : unlinked;
      double expected = 0;
      for (int64_t t = 0; t < steps; ++t) {
        for (int64_t j = 0; j < h; ++j) {
          const double own = messages[(t * all + p) * h + j];
          const double other = others[linked][(t * of_type + p - (linked ? unlinked : 0)) * h + j];
          const double change = linked ? own - other : other - own;
          expected += d_seen[(t * test.shape.nodes + receiver) * width + kOwn + j] * change;
        }
      }
      ASSERT_NEAR(gain[link], expected, 1e-3) << link;
    }
  }
}

}  // namespace
}  // namespace aimle::experiments::nri
