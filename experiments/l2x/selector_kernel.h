// The selector's layers that are not products of matrices (model.h), in one kernel each.
//
// Tensors are float32, contiguous, aligned to 16 bytes, on the current device. x is [reviews, words,
// columns]. real is bool [reviews, words]: words that are not real count as zeros; null: all are.
#pragma once

#include <cstdint>

#include "aimle/cuda/device_rows.h"

namespace aimle::experiments::l2x {

struct WordSizes {
  int64_t reviews, words, columns;
  int64_t rows = reviews * words;
};

/// Whether the program was built with GPU kernels.
bool has_selector_kernels();

/// For every word the columns of the word before it, its own and those of the word after it, zeros
/// beyond both ends: seen [reviews, words, 3, columns].
void see_neighbours_on_device(const WordSizes& sizes, const float* x, const bool* real, float* seen,
                              void* stream);

/// The maximum of every column over the words, and the first word that has it: both [reviews,
/// columns].
void highest_on_device(const WordSizes& sizes, const float* x, const bool* real, float* highest,
                       int64_t* place, void* stream);

/// The gradient of x from those of seen and, if given, of highest.
struct WordGradients {
  const float* seen;
  const float* highest = nullptr;
  const int64_t* place = nullptr;
};
void word_gradients_on_device(const WordSizes& sizes, const WordGradients& gradients,
                              const bool* real, float* dx, void* stream);

/// Dropout: an entry is kept if its standard Gumbel noise is below `bound`, and then multiplied by
/// `scale`. The noise is that of the key for instances of [2 columns, words].
struct Dropout {
  cuda::DeviceKey key;
  float bound = 0;
  float scale = 1;
};

/// The columns of `global` [reviews, columns] and, after them, those of `local` [reviews, words,
/// columns], with dropout: joined [reviews, words, 2 columns]. kept, of the same size, tells which
/// entries were; null: nothing is dropped. `columns` is a multiple of 4.
void join_on_device(const WordSizes& sizes, const float* global, const float* local,
                    const Dropout& dropout, float* joined, bool* kept, void* stream);

void join_gradients_on_device(const WordSizes& sizes, const float* d_joined, const bool* kept,
                              float scale, float* d_global, float* d_local, void* stream);

}  // namespace aimle::experiments::l2x
