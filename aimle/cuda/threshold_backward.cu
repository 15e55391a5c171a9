#include "aimle/cuda/threshold_backward.h"

#include "aimle/base/check.h"
#include "aimle/cuda/direct_output.cuh"
#include "aimle/cuda/group.cuh"
#include "aimle/cuda/launch.cuh"
#include "aimle/cuda/row.cuh"
#include "aimle/cuda/sums.cuh"
#include "aimle/cuda/thresholds.h"
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
  double scale;
  int64_t gradients;
  int64_t chosen;  // ones in a solution
  int32_t vertices;
};

// ---- Partners of one sample, by entry -----------------------------------------------------------

/// An entry's partner: its threshold, and what either gains. `entry` < 0: there is none.
struct Partner {
  int64_t entry;
  double threshold;
  double difference;
};

/// Argmax and top-k.
template <class T>
class RowSample {
 public:
  static int64_t bytes(const Rule&, int64_t) { return 0; }

  template <class Chosen>
  __device__ RowSample(Group<32>& warp, const Rule&, const Row<T>& row, const T* d,
                       const Chosen& chosen, char*)
      : d_(d) {
    const QuadScores<T> scores{row};
    found_ = find_row_partners<T>(warp, scores, row.mask(), chosen);
    if (found_.best_out != kNoPartner) out_ = scores(found_.best_out);
    if (found_.worst_in != kNoPartner) in_ = scores(found_.worst_in);
  }

  __device__ Partner of(int64_t j, bool is_in) const {
    const uint32_t entry = is_in ? found_.best_out : found_.worst_in;
    if (entry == kNoPartner) return {-1, 0.0, 0.0};
    return {entry, static_cast<double>(is_in ? out_ : in_),
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
  static int64_t bytes(const Rule& rule, int64_t n) {
    return partner_bytes(rule) + align_up(n * static_cast<int64_t>(sizeof(T)));
  }

  template <class Chosen>
  __device__ TreeSample(Group<32>& warp, const Rule& rule, const Row<T>& row, const T* d,
                        const Chosen& chosen, char* memory)
      : n_(rule.vertices),
        x_(reinterpret_cast<T*>(memory)),
        d_(d),
        tree_(TreePartners<T>::at(memory + (row.n() * sizeof(T) + 15) / 16 * 16, n_)) {
    T* x = reinterpret_cast<T*>(memory);
    QuadScores<T>{row}.for_each(warp.rank(), warp.size(),
                                [x](int64_t j, T score) { x[j] = score; });
    warp.sync();
    const bool* mask = row.mask();
    find_tree_partners<T>(
        warp, n_, [&](int32_t i, int32_t j) { return weight(i, j); },
        [&](int32_t i, int32_t j) {
          return mask == nullptr || (mask[entry(i, j)] && mask[reverse(i, j)]);
        },
        [&](int32_t i, int32_t j) { return chosen(entry(i, j)); }, tree_);
  }

  __device__ Partner of(int64_t j, bool) const {
    const Ends own = ends_of_entry(static_cast<int32_t>(j));
    const uint32_t edge = tree_.partner[edge_of(own)];
    if (edge == kNoPartner) return {-1, 0.0, 0.0};
    const Ends other = ends_of_edge(static_cast<int32_t>(edge));
    const T needed = weight(other.i, other.j);
    // What this direction needs, given the other one.
    const T threshold =
        kDirected
            ? needed - x_[entry(own.i, own.j) == j ? reverse(own.i, own.j) : entry(own.i, own.j)]
            : needed;
    return {entry(other.i, other.j), static_cast<double>(threshold), gain(own) - gain(other)};
  }

 private:
  struct Ends {
    int32_t i;
    int32_t j;  // i < j
  };

  static int64_t partner_bytes(const Rule& rule) {
    const int64_t n = rule.vertices;
    return TreePartners<T>::bytes(n, n * (n - 1) / 2);
  }
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

// ---- Gradients ----------------------------------------------------------------------------------

/// A tree of halves, as the end of fixed_sum.
__device__ __forceinline__ double fold_lanes(double partial) {
#pragma unroll
  for (int half = 16; half > 0; half /= 2) partial += __shfl_down_sync(kAllLanes, partial, half);
  return partial;
}

template <class T, class Sample>
__device__ void gradient_of_example(const RowSource<T>& source, const Rule& rule, int64_t b,
                                    const T* dy, const uint8_t* bits, char* memory, T* dtheta,
                                    Changes* changes, Capped* capped) {
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
    if (warp.sum(ones) != row.k(rule.chosen)) {
      for (int64_t j = lane; j < n; j += 32) sum[j] = static_cast<double>(NAN);
      continue;
    }
    const T* d = dy + (b * rule.gradients + (rule.gradients == 1 ? 0 : s)) * n;
    const Sample sample(warp, rule, row, d, chosen, of_sample);
    for (int64_t j = lane; j < n; j += 32) {
      const bool is_in = chosen(j);
      const Partner partner = sample.of(j, is_in);
      if (partner.entry < 0 || !is_free(j) || !isfinite(partner.threshold)) continue;
      const double u = (partner.threshold - rule.sign * static_cast<double>(theta[j])) / rule.tau;
      const double weight = threshold_weight(rule.density, rule.order, u, is_in);
      const double kept = weight < rule.max_weight ? weight : rule.max_weight;
      weights += 1;
      cut += weight > kept;
      mass += weight * fabs(partner.difference);
      lost += (weight - kept) * fabs(partner.difference);
      sum[j] += (trapezoid ? 0.5 : 1.0) * kept * partner.difference;
    }
    ++solved;
    warp.sync();
  }

  const double total = warp_fixed_sum(n, [&](int64_t j) { return is_free(j) ? sum[j] : 0.0; });
  int free = 0;
  for (int64_t j = lane; j < n; j += 32) free += is_free(j);
  free = warp.sum(free);
  const double mean = total / (free > 1 ? static_cast<double>(free) : 1.0);
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
                     const T* dy, const uint8_t* bits, char* memory, int64_t bytes, T* dtheta,
                     Changes* changes, Capped* capped) {
  char* shared = dynamic_shared<char>();
  const int slot = static_cast<int>(threadIdx.x) / 32;
  const int64_t unit = int64_t{blockIdx.x} * kWarps + slot;
  char* own = memory == nullptr ? shared + slot * bytes : memory + unit * bytes;
  for (int64_t b = unit; b < source.examples.count; b += int64_t{gridDim.x} * kWarps) {
    gradient_of_example<T, Sample>(source, rule, b, dy, bits, own, dtheta, changes, capped);
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
void launch_backward(const Rule& rule, const RowSource<T>& source, const DeviceBackward<T>& pass,
                     Changes* changes, Capped* capped, const Context& context) {
  const int64_t n = source.examples.n, count = source.examples.count;
  const int64_t bytes = align_up(n * static_cast<int64_t>(sizeof(double))) + Sample::bytes(rule, n);
  const bool shared = bytes <= kSharedBytes;
  const unsigned blocks =
      shared ? blocks_for(count, kWarps) : blocks_for(count, kWarps, kLargeBlocks);
  char* memory = shared ? nullptr : context.array<char>(blocks * kWarps * bytes);
  launch("thresholds", threshold_kernel<T, Sample>, blocks, 32 * kWarps,
         shared ? kWarps * bytes : 0, context, source, rule, pass.dy, pass.bits, memory, bytes,
         pass.dtheta, changes, capped);
}

}  // namespace

template <class T>
void threshold_backward(const EstimatorSettings& settings, const Solver& solver,
                        const DeviceExamples<T>& examples, const DeviceBackward<T>& pass,
                        const DeviceState& state, const Context& context) {
  const int64_t chosen = entries_in_solution(solver);
  AIMLE_CHECK(!solver.is<SpanningTree>() || examples.n < (int64_t{1} << 31),
              "[aimle::thresholds] expected fewer than 2^31 entries but got n=", examples.n);
  if (examples.count == 0) return;
  const auto& target = std::get<ThresholdTarget>(settings.target);
  const auto* tree = solver.get_if<SpanningTree>();
  const bool directed = tree != nullptr && tree->layout == SpanningTree::Layout::kDirected;
  const double sign = settings.sense == Sense::kMin ? -1.0 : 1.0;
  const double samples =
      settings.output == Output::kMean ? static_cast<double>(settings.samples) : 1.0;
  const Rule rule{.density = target.density,
                  .order = settings.noise.kind == NoiseKind::kNone ? ThresholdTarget::Order::kFirst
                                                                   : target.order,
                  .max_weight = target.max_weight,
                  .tau = settings.theta_temperature,
                  .sign = sign,
                  .scale = sign / (settings.theta_temperature * samples),
                  .gradients = gradient_rows(settings),
                  .chosen = chosen,
                  .vertices = tree != nullptr ? static_cast<int32_t>(tree->vertices) : 0};
  const RowSource<T> source{.examples = examples,
                            .samples = settings.samples,
                            .noise = settings.noise,
                            .tau = settings.theta_temperature,
                            .sign = signs(settings.sense, Sense::kMax)};
  auto* changes = context.array<Changes>(examples.count);
  auto* capped = context.array<Capped>(examples.count);
  if (tree == nullptr) {
    launch_backward<T, RowSample<T>>(rule, source, pass, changes, capped, context);
  } else if (directed) {
    launch_backward<T, TreeSample<T, true>>(rule, source, pass, changes, capped, context);
  } else {
    launch_backward<T, TreeSample<T, false>>(rule, source, pass, changes, capped, context);
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
