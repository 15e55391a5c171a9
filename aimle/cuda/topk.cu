#include "aimle/cuda/topk.cuh"

#include "aimle/cuda/topk_large.h"
#include "aimle/cuda/whole_examples.cuh"

namespace aimle::cuda {
namespace {

template <class T>
void map_long_rows(int64_t k, const RowSource<T>& source, const RowSink<T>& sink,
                   const Context& context) {
  constexpr int kThreads = 512;
  using Policy = BlockTopK<kThreads>;
  const int64_t n = source.examples.n;
  const Policy policy{.k = k};
  const int64_t needed = UnitOf<Policy>::bytes(n, align_up(policy.template row_bytes<T>(n)));
  if (needed <= shared_memory_limit()) return map_rows_by(policy, source, sink, context);
  map_large_topk(k, source, sink, context);
}

/// Calls body with the policy for rows of n entries that a thread or a warp can solve; false for
/// longer ones.
template <class Body>
bool with_short_policy(int64_t n, int64_t k, Body body) {
  if (n > 1024) return false;
  if (n <= 8) return body(ThreadTopK<8>{k}), true;
  if (n <= 12) return body(ThreadTopK<12>{k}), true;
  if (n <= 16) return body(ThreadTopK<16>{k}), true;
  if (n <= 20) return body(ThreadTopK<20>{k}), true;
  if (n <= 24) return body(ThreadTopK<24>{k}), true;
  if (n <= 32) return body(ThreadTopK<32>{k}), true;
  if (n <= 128) return body(WarpTopK<1>{k}), true;
  if (n <= 256) return body(WarpTopK<2>{k}), true;
  if (n <= 512) return body(WarpTopK<4>{k}), true;
  return body(WarpTopK<8>{k}), true;
}

}  // namespace

template <class T>
void map_rows(const TopK& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  if (source.rows() == 0) return;
  const bool is_short = with_short_policy(
      solver.n, solver.k, [&](const auto& policy) { map_rows_by(policy, source, sink, context); });
  if (!is_short) map_long_rows(solver.k, source, sink, context);
}

template <class T>
int64_t whole_examples(const TopK& solver, const WholeExamples<T>& work, const Context& context) {
  int64_t blocks = 0;
  with_short_policy(solver.n, solver.k,
                    [&](const auto& policy) { blocks = whole_examples_by(policy, work, context); });
  return blocks;
}

/// Argmax is top-1: same rules, same statuses.
template <class T>
void map_rows(const Argmax& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  map_rows(TopK{.n = solver.n, .k = 1}, source, sink, context);
}

template <class T>
int64_t whole_examples(const Argmax& solver, const WholeExamples<T>& work, const Context& context) {
  return whole_examples(TopK{.n = solver.n, .k = 1}, work, context);
}

AIMLE_INSTANTIATE_MAP(TopK)
AIMLE_INSTANTIATE_MAP(Argmax)
AIMLE_INSTANTIATE_WHOLE(TopK)
AIMLE_INSTANTIATE_WHOLE(Argmax)

}  // namespace aimle::cuda
