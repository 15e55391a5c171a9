#include "aimle/cuda/topk.cuh"

#include "aimle/cuda/topk_large.h"

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

}  // namespace

template <class T>
void map_rows(const TopK& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  if (source.rows() == 0) return;
  const int64_t n = solver.n, k = solver.k;
  if (n <= 8) return map_rows_by(ThreadTopK<8>{k}, source, sink, context);
  if (n <= 12) return map_rows_by(ThreadTopK<12>{k}, source, sink, context);
  if (n <= 16) return map_rows_by(ThreadTopK<16>{k}, source, sink, context);
  if (n <= 20) return map_rows_by(ThreadTopK<20>{k}, source, sink, context);
  if (n <= 24) return map_rows_by(ThreadTopK<24>{k}, source, sink, context);
  if (n <= 32) return map_rows_by(ThreadTopK<32>{k}, source, sink, context);
  if (n <= 128) return map_rows_by(WarpTopK<1>{k}, source, sink, context);
  if (n <= 256) return map_rows_by(WarpTopK<2>{k}, source, sink, context);
  if (n <= 512) return map_rows_by(WarpTopK<4>{k}, source, sink, context);
  if (n <= 1024) return map_rows_by(WarpTopK<8>{k}, source, sink, context);
  map_long_rows(k, source, sink, context);
}

/// The largest is the first of one: same rules, same statuses.
template <class T>
void map_rows(const Argmax& solver, const RowSource<T>& source, const RowSink<T>& sink,
              const Context& context) {
  map_rows(TopK{.n = solver.n, .k = 1}, source, sink, context);
}

template void map_rows(const TopK&, const RowSource<float>&, const RowSink<float>&, const Context&);
template void map_rows(const TopK&, const RowSource<double>&, const RowSink<double>&,
                       const Context&);
template void map_rows(const Argmax&, const RowSource<float>&, const RowSink<float>&,
                       const Context&);
template void map_rows(const Argmax&, const RowSource<double>&, const RowSink<double>&,
                       const Context&);

}  // namespace aimle::cuda
