// Top-k of rows beyond shared memory, by as many blocks as a row has chunks of 8192 entries.
//
// The k-th largest key is found digit by digit, eleven bits at a time from the top: all blocks
// count the digits of the keys with the same prefix, then one block per row finds the digit. Scores
// are computed again in every pass instead of stored. Finally each block derives from the counts of
// the chunks before it how many of the keys that equal the k-th largest are left for it, so that
// the lower index wins.
#pragma once

#include "aimle/cuda/device_rows.h"

namespace aimle::cuda {

template <class T>
void map_large_topk(int64_t k, const RowSource<T>& source, const RowSink<T>& sink,
                    const Context& context);

}  // namespace aimle::cuda
