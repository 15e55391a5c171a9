#include "aimle/cuda/threshold_backward.h"

#include "aimle/base/check.h"
#include "aimle/cuda/centred_rows.cuh"
#include "aimle/cuda/chain_swaps.h"
#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/group.cuh"
#include "aimle/cuda/lattice_path.h"
#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/row.cuh"
#include "aimle/cuda/sums.cuh"
#include "aimle/cuda/thresholds.h"
#include "aimle/estimate/lattice_swaps.h"
#include "aimle/estimate/threshold_weight.h"
#include "aimle/estimate/thresholds.h"

namespace aimle::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int64_t kSharedBytes = 12 * 1024;  // of an example; beyond, device memory
constexpr int64_t kLargeBlocks = 528;
constexpr int kTotalThreads = 1024;

/// What the cap took of an example.
struct Capped {
  double weights;
  double capped;
  double mass;
  double lost;
};

struct Rule {
  NoiseKind density;
  ThresholdTarget::Order order;
  double max_weight;
  double tau;
  double sign;
  double shift;  // what was subtracted from the scores, to centre their noise
  double scale;
  bool centred;  // subtract the mean of the gradient?
  int64_t gradients;
};

// ---- The swaps of one sample, by entry ----------------------------------------------------------
//
// A sample is made from its row, the gradient, the solution and memory of `bytes`, if it is solved.

/// Not finite where there is none, and what <d, z> gains by the entry.
struct Threshold {
  double threshold;
  double difference;
};

/// The scores of a row, which has to be in memory for what follows.
template <class T, class Scores>
__device__ const T* keep_scores(Group<32>& warp, const Scores& scores, char* memory) {
  T* x = reinterpret_cast<T*>(memory);
  scores.for_each(warp.rank(), warp.size(), [x](int64_t j, T score) { x[j] = score; });
  warp.sync();
  return x;
}
template <class T>
AIMLE_HD int64_t score_bytes(int64_t n) {
  return (n * static_cast<int64_t>(sizeof(T)) + 15) / 16 * 16;
}

/// Argmax and top-k.
template <class T>
class RowSample {
 public:
  struct Shape {
    int64_t chosen;  // ones in a solution
  };

  static int64_t bytes(const Shape&, int64_t) { return 0; }
  __device__ static bool solved(Group<32>&, const Shape& shape, const Row<T>& row, const T*,
                                int ones) {
    return ones == row.k(shape.chosen);
  }

  template <class Chosen>
  __device__ RowSample(Group<32>& warp, const Shape&, const Row<T>& row, const T* d,
                       const Chosen& chosen, char*)
      : d_(d) {
    const QuadScores<T> scores{row};
    found_ = find_row_partners<T>(warp, scores, row.mask(), chosen);
    if (found_.best_out != kNoPartner) out_ = scores(found_.best_out);
    if (found_.worst_in != kNoPartner) in_ = scores(found_.worst_in);
  }

  __device__ Threshold of(int64_t j, bool is_in) const {
    const uint32_t entry = is_in ? found_.best_out : found_.worst_in;
    if (entry == kNoPartner) return {static_cast<double>(INFINITY), 0.0};
    return {static_cast<double>(is_in ? out_ : in_),
            static_cast<double>(d_[j]) - static_cast<double>(d_[entry])};
  }

 private:
  const T* d_;
  RowPartners found_;
  T out_ = 0;
  T in_ = 0;
};

/// Spanning trees; the scores lie in memory, after the partners.
template <class T, bool kDirected>
class TreeSample {
 public:
  struct Shape {
    int64_t chosen;
    int32_t vertices;
  };

  static int64_t bytes(const Shape& shape, int64_t n) {
    const int64_t vertices = shape.vertices;
    return TreePartners<T>::bytes(vertices, vertices * (vertices - 1) / 2) + score_bytes<T>(n);
  }
  __device__ static bool solved(Group<32>&, const Shape& shape, const Row<T>&, const T*, int ones) {
    return ones == shape.chosen;
  }

  template <class Chosen>
  __device__ TreeSample(Group<32>& warp, const Shape& shape, const Row<T>& row, const T* d,
                        const Chosen& chosen, char* memory)
      : n_(shape.vertices),
        x_(keep_scores<T>(warp, QuadScores<T>{row}, memory)),
        d_(d),
        tree_(TreePartners<T>::at(memory + score_bytes<T>(row.n()), n_)) {
    const bool* mask = row.mask();
    find_tree_partners<T>(
        warp, n_, [&](int32_t i, int32_t j) { return weight(i, j); },
        [&](int32_t i, int32_t j) {
          return mask == nullptr || (mask[entry(i, j)] && mask[reverse(i, j)]);
        },
        [&](int32_t i, int32_t j) { return chosen(entry(i, j)); }, tree_);
  }

  __device__ Threshold of(int64_t j, bool) const {
    const Ends own = ends_of_entry(static_cast<int32_t>(j));
    const uint32_t edge = tree_.partner[edge_of(own)];
    if (edge == kNoPartner) return {static_cast<double>(INFINITY), 0.0};
    const Ends other = ends_of_edge(static_cast<int32_t>(edge));
    const T needed = weight(other.i, other.j);
    // What this direction needs, given the other one.
    const T threshold =
        kDirected
            ? needed - x_[entry(own.i, own.j) == j ? reverse(own.i, own.j) : entry(own.i, own.j)]
            : needed;
    return {static_cast<double>(threshold), gain(own) - gain(other)};
  }

 private:
  struct Ends {
    int32_t i;
    int32_t j;  // i < j
  };

  __device__ int32_t edge_of(Ends e) const {
    return e.i * (2 * n_ - e.i - 1) / 2 + (e.j - e.i - 1);
  }
  __device__ int32_t entry(int32_t i, int32_t j) const {
    return kDirected ? i * (n_ - 1) + j - 1 : edge_of({i, j});
  }
  __device__ int32_t reverse(int32_t i, int32_t j) const {
    return kDirected ? j * (n_ - 1) + i : edge_of({i, j});
  }
  __device__ T weight(int32_t i, int32_t j) const {
    const T x = x_[entry(i, j)];
    return kDirected ? x + x_[reverse(i, j)] : x;
  }
  __device__ double gain(Ends e) const {
    const auto d = static_cast<double>(d_[entry(e.i, e.j)]);
    return kDirected ? d + static_cast<double>(d_[reverse(e.i, e.j)]) : d;
  }
  __device__ Ends ends_of_edge(int32_t edge) const {
    const int32_t back = n_ * (n_ - 1) / 2 - 1 - edge;  // counted from the last
    auto t = static_cast<int32_t>((sqrtf(8.0f * static_cast<float>(back) + 1.0f) - 1.0f) * 0.5f);
    while (t * (t + 1) / 2 > back) --t;
    while ((t + 1) * (t + 2) / 2 <= back) ++t;
    const int32_t i = n_ - 2 - t;
    return {i, edge - i * (2 * n_ - i - 1) / 2 + i + 1};
  }
  __device__ Ends ends_of_entry(int32_t j) const {
    if constexpr (!kDirected) return ends_of_edge(j);
    const int32_t receiver = j / (n_ - 1), place = j % (n_ - 1);
    const int32_t sender = place + (place >= receiver ? 1 : 0);
    return receiver < sender ? Ends{receiver, sender} : Ends{sender, receiver};
  }

  int32_t n_;
  const T* x_;
  const T* d_;
  TreePartners<T> tree_;
};

/// Bernoulli: zero, and nothing else changes. Its rows are solved unless theta is NaN.
template <class T>
class SignSample {
 public:
  struct Shape {};

  static int64_t bytes(const Shape&, int64_t) { return 0; }
  __device__ static bool solved(Group<32>& warp, const Shape&, const Row<T>& row, const T* theta,
                                int) {
    const bool* mask = row.mask();
    bool nan = false;
    for (int64_t j = warp.rank(); j < row.n(); j += warp.size()) {
      nan |= theta[j] != theta[j] && (mask == nullptr || mask[j]);
    }
    return !warp.any(nan);
  }

  template <class Chosen>
  __device__ SignSample(Group<32>&, const Shape&, const Row<T>&, const T* d, const Chosen&, char*)
      : d_(d) {}

  __device__ Threshold of(int64_t j, bool) const { return {0.0, static_cast<double>(d_[j])}; }

 private:
  const T* d_;
};

template <class T>
class ChainSample {
 public:
  using Shape = ChainShape;

  static int64_t bytes(const Shape& chain, int64_t n) {
    return score_bytes<T>(n) +
           align_up(ChainSwaps<T>::numbers(chain) * static_cast<int64_t>(sizeof(double)));
  }
  __device__ static bool solved(Group<32>& warp, const Shape& chain, const Row<T>& row, const T*,
                                int ones) {
    return ones == steps_of_mask(warp, chain, row.mask());
  }

  template <class Chosen>
  __device__ ChainSample(Group<32>& warp, const Shape& chain, const Row<T>& row, const T* d,
                         const Chosen& chosen, char* memory)
      : swaps_{.chain = chain,
               .steps = steps_of_mask(warp, chain, row.mask()),
               .x = keep_scores<T>(warp, QuadScores<T>{row}, memory),
               .mask = row.mask(),
               .d = d} {
    swaps_.use(reinterpret_cast<double*>(memory + score_bytes<T>(row.n())));
    swaps_.find(warp, chosen);
  }

  __device__ Threshold of(int64_t j, bool is_in) const {
    const auto own = swaps_.of(j, is_in);
    return {own.threshold, own.difference};
  }

 private:
  ChainSwaps<T> swaps_;
};

template <class T, bool kPerMove>
class LatticeSample {
 public:
  using Shape = LatticeShape;
  using Swaps = aimle::detail::LatticeSwaps<kPerMove, T>;

  static int64_t bytes(const Shape& lattice, int64_t n) {
    return score_bytes<T>(n) + align_up(Swaps::numbers(lattice.height, lattice.width) *
                                        static_cast<int64_t>(sizeof(double)));
  }
  /// A path has an entry, but for that of moves over a single cell.
  __device__ static bool solved(Group<32>& warp, const Shape& lattice, const Row<T>& row,
                                const T* theta, int ones) {
    if (ones > 0 || !kPerMove) return ones > 0;
    const auto part = detail::part_of < kPerMove ? 3 : 1 > (warp, lattice, row.mask());
    const bool* mask = row.mask();
    bool nan = false;
    for (int m = 0; m < 3; ++m) nan |= theta[m] != theta[m] && (mask == nullptr || mask[m]);
    return part.height == 1 && part.width == 1 && !nan;
  }

  template <class Chosen>
  __device__ LatticeSample(Group<32>& warp, const Shape& lattice, const Row<T>& row, const T* d,
                           const Chosen& chosen, char* memory) {
    const T* x = keep_scores<T>(warp, CentredScores<T>{row}, memory);
    const auto part = detail::part_of < kPerMove ? 3 : 1 > (warp, lattice, row.mask());
    swaps_ = {.height = part.height,
              .width = part.width,
              .pitch = part.pitch,
              .moves = lattice.moves,
              .x = x,
              .mask = row.mask(),
              .d = d};
    swaps_.use(reinterpret_cast<double*>(memory + score_bytes<T>(row.n())), lattice.height,
               lattice.width);
    swaps_.find(warp, chosen);
  }

  __device__ Threshold of(int64_t j, bool is_in) const {
    const auto own = swaps_.of(static_cast<int32_t>(j), is_in);
    return {own.threshold, own.difference};
  }

 private:
  Swaps swaps_;
};

// ---- Gradients ----------------------------------------------------------------------------------

/// A tree of halves, as the end of fixed_sum.
__device__ __forceinline__ double fold_lanes(double partial) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) partial += __shfl_down_sync(kAllLanes, partial, half);
  return partial;
}

template <class T, class Sample>
__device__ void gradient_of_example(const RowSource<T>& source, const Rule& rule,
                                    const typename Sample::Shape& shape, int64_t b, const T* dy,
                                    const uint8_t* bits, char* memory, T* dtheta, Changes* changes,
                                    Capped* capped) {
  Group<32> warp;
  const int lane = warp.rank();
  const int64_t n = source.examples.n, samples = source.samples, stride = bytes_per_row(n);
  const T* theta = source.examples.theta + b * n;
  const bool* mask = source.examples.mask == nullptr ? nullptr : source.examples.mask + b * n;
  const bool trapezoid = rule.order == ThresholdTarget::Order::kTrapezoid;
  const auto is_free = [&](int64_t j) {
    return (mask == nullptr || mask[j]) && !is_infinite(theta[j]);
  };
  auto* sum = reinterpret_cast<double*>(memory);  // [n], lane j mod 32 has entry j
  char* const of_sample = memory + (n * sizeof(double) + 15) / 16 * 16;
  for (int64_t j = lane; j < n; j += 32) sum[j] = 0.0;
  double mass = 0.0, lost = 0.0;
  int weights = 0, cut = 0;
  int64_t solved = 0;
  for (int64_t s = 0; s < samples; ++s) {
    const int64_t r = b * samples + s;
    const Row<T> row(source, r);
    const uint8_t* own = bits + r * stride;
    const auto chosen = [own](int64_t j) { return (own[j / 8] >> (j % 8) & 1) != 0; };
    int ones = 0;
    for (int64_t i = lane; i < stride; i += 32) ones += __popc(static_cast<unsigned>(own[i]));
    if (!Sample::solved(warp, shape, row, theta, warp.sum(ones))) {
      for (int64_t j = lane; j < n; j += 32) sum[j] = static_cast<double>(NAN);
      continue;
    }
    const T* d = dy + (b * rule.gradients + (rule.gradients == 1 ? 0 : s)) * n;
    const Sample sample(warp, shape, row, d, chosen, of_sample);
    for (int64_t j = lane; j < n; j += 32) {
      const bool is_in = chosen(j);
      const Threshold swap = sample.of(j, is_in);
      if (!is_free(j) || !isfinite(swap.threshold)) continue;
      const double u =
          ((swap.threshold + rule.shift) - rule.sign * static_cast<double>(theta[j])) / rule.tau;
      const double weight = threshold_weight(rule.density, rule.order, u, is_in);
      const double kept = weight < rule.max_weight ? weight : rule.max_weight;
      weights += 1;
      cut += weight > kept;
      mass += weight * fabs(swap.difference);
      lost += (weight - kept) * fabs(swap.difference);
      sum[j] += (trapezoid ? 0.5 : 1.0) * kept * swap.difference;
    }
    ++solved;
    warp.sync();
  }

  const double total = warp_fixed_sum(n, [&](int64_t j) { return is_free(j) ? sum[j] : 0.0; });
  int free = 0;
  for (int64_t j = lane; j < n; j += 32) free += is_free(j);
  free = warp.sum(free);
  const double mean = rule.centred ? total / (free > 1 ? static_cast<double>(free) : 1.0) : 0.0;
  int zeros = 0;
  for (int64_t j = lane; j < n; j += 32) {
    const bool moves = is_free(j);
    const double g = moves ? rule.scale * (sum[j] - mean) : 0.0;
    dtheta[b * n + j] = static_cast<T>(g);
    zeros += moves && g == 0.0;
  }
  zeros = warp.sum(zeros);
  weights = warp.sum(weights);
  cut = warp.sum(cut);
  mass = fold_lanes(mass);
  lost = fold_lanes(lost);
  if (lane != 0) return;
  changes[b] = {.samples = solved, .zeros = zeros, .entries = free};
  capped[b] = {static_cast<double>(weights), static_cast<double>(cut), mass, lost};
}

template <class T, class Sample>
__global__ void __launch_bounds__(32 * kWarps)
    threshold_kernel(const __grid_constant__ RowSource<T> source, const __grid_constant__ Rule rule,
                     const __grid_constant__ typename Sample::Shape shape, const T* dy,
                     const uint8_t* bits, char* memory, int64_t bytes, T* dtheta, Changes* changes,
                     Capped* capped) {
  char* shared = dynamic_shared<char>();
  const int slot = static_cast<int>(threadIdx.x) / 32;
  const int64_t unit = int64_t{blockIdx.x} * kWarps + slot;
  char* own = memory == nullptr ? shared + slot * bytes : memory + unit * bytes;
  for (int64_t b = unit; b < source.examples.count; b += int64_t{gridDim.x} * kWarps) {
    gradient_of_example<T, Sample>(source, rule, shape, b, dy, bits, own, dtheta, changes, capped);
    __syncwarp();
  }
}

/// The shares of all examples: out[0] of the weights, out[1] of the mass; and a lambda of none.
__global__ void __launch_bounds__(kTotalThreads)
    total_kernel(int64_t count, const Capped* capped, double* scratch, double* out) {
  const auto total = [&](double Capped::*part) {
    return block_fixed_total(
        count, [&](int64_t b) { return capped[b].*part; }, scratch);
  };
  const double weights = total(&Capped::weights), cut = total(&Capped::capped);
  const double mass = total(&Capped::mass), lost = total(&Capped::lost);
  if (threadIdx.x != 0) return;
  out[0] = cut / (weights > 1.0 ? weights : 1.0);
  out[1] = mass > 0.0 ? lost / mass : mass;
  out[2] = static_cast<double>(NAN);
}

template <class T, class Sample>
void launch_backward(const typename Sample::Shape& shape, const Rule& rule,
                     const RowSource<T>& source, const DeviceBackward<T>& pass, Changes* changes,
                     Capped* capped, const Context& context) {
  const int64_t n = source.examples.n, count = source.examples.count;
  const int64_t bytes =
      align_up(n * static_cast<int64_t>(sizeof(double))) + Sample::bytes(shape, n);
  const bool shared = bytes <= kSharedBytes;
  const unsigned blocks =
      shared ? blocks_for(count, kWarps) : blocks_for(count, kWarps, kLargeBlocks);
  char* memory = shared ? nullptr : context.array<char>(blocks * kWarps * bytes);
  launch("thresholds", threshold_kernel<T, Sample>, blocks, 32 * kWarps,
         shared ? kWarps * bytes : 0, context, source, rule, shape, pass.dy, pass.bits, memory,
         bytes, pass.dtheta, changes, capped);
}

}  // namespace

template <class T>
void threshold_backward(const EstimatorSettings& settings, const Solver& solver,
                        const DeviceExamples<T>& examples, const DeviceBackward<T>& pass,
                        const DeviceState& state, const Context& context) {
  const SolutionSize size = {.fixed = solver.solution_size().fixed,
                             .ones = entries_in_solution(solver)};
  AIMLE_CHECK(!solver.is<SpanningTree>() || examples.n < (int64_t{1} << 31),
              "[aimle::thresholds] expected fewer than 2^31 entries but got n=", examples.n);
  if (examples.count == 0) return;
  const auto& target = std::get<ThresholdTarget>(settings.target);
  const double sign = settings.sense == Sense::kMin ? -1.0 : 1.0;
  const double samples =
      settings.output == Output::kMean ? static_cast<double>(settings.samples) : 1.0;
  const double mean = size.fixed ? 0.0 : settings.noise_mean;
  const Rule rule{
      .density = target.density,
      .order =
          settings.noise.kind == NoiseKind::kNone ? ThresholdTarget::Order::kFirst : target.order,
      .max_weight = target.max_weight,
      .tau = settings.theta_temperature,
      .sign = sign,
      .shift = static_cast<double>(centring<T>(mean, settings.theta_temperature, Signs{})),
      .scale = sign / (settings.theta_temperature * samples),
      .centred = size.fixed,
      .gradients = gradient_rows(settings)};
  const RowSource<T> source{.examples = examples,
                            .samples = settings.samples,
                            .noise = settings.noise,
                            .tau = settings.theta_temperature,
                            .mean = settings.noise.kind == NoiseKind::kNone ? 0.0 : mean,
                            .sign = signs(settings.sense, Sense::kMax)};
  auto* changes = context.array<Changes>(examples.count);
  auto* capped = context.array<Capped>(examples.count);
  const auto start = [&]<class Sample>(std::type_identity<Sample>,
                                       const typename Sample::Shape& shape) {
    launch_backward<T, Sample>(shape, rule, source, pass, changes, capped, context);
  };
  if (solver.swaps() == Swaps::kEntry) {
    start(std::type_identity<RowSample<T>>{}, {.chosen = size.ones});
  } else if (const auto* tree = solver.get_if<SpanningTree>()) {
    const auto vertices = static_cast<int32_t>(tree->vertices);
    if (tree->layout == SpanningTree::Layout::kDirected) {
      start(std::type_identity<TreeSample<T, true>>{}, {.chosen = size.ones, .vertices = vertices});
    } else {
      start(std::type_identity<TreeSample<T, false>>{},
            {.chosen = size.ones, .vertices = vertices});
    }
  } else if (solver.is<Bernoulli>()) {
    start(std::type_identity<SignSample<T>>{}, {});
  } else if (const auto* chain = solver.get_if<Chain>()) {
    start(std::type_identity<ChainSample<T>>{}, chain_shape(*chain));
  } else if (const auto* cells = solver.get_if<LatticePath>()) {
    start(std::type_identity<LatticeSample<T, false>>{}, lattice_shape(*cells));
  } else if (const auto* moves = solver.get_if<LatticeMoves>()) {
    start(std::type_identity<LatticeSample<T, true>>{}, lattice_shape(*moves));
  } else {
    aimle::detail::throw_invalid_argument(
        "[aimle::thresholds] ", solver.name(),
        " has no thresholds on the GPU; move theta to the CPU, or use aimle");
  }
  if (state.stats == nullptr) return;
  auto* totals = context.array<double>(3);
  launch("thresholds", total_kernel, 1, kTotalThreads, 0, context, examples.count,
         static_cast<const Capped*>(capped),
         context.array<double>(fixed_total_scratch(examples.count)), totals);
  update_state(settings,
               {.examples = examples.count,
                .reported = totals + 2,
                .stride = 0,
                .changes = changes,
                .blocks = examples.count,
                .capped = totals},
               state, nullptr, context);
}

template void threshold_backward(const EstimatorSettings&, const Solver&,
                                 const DeviceExamples<float>&, const DeviceBackward<float>&,
                                 const DeviceState&, const Context&);
template void threshold_backward(const EstimatorSettings&, const Solver&,
                                 const DeviceExamples<double>&, const DeviceBackward<double>&,
                                 const DeviceState&, const Context&);

}  // namespace aimle::cuda
