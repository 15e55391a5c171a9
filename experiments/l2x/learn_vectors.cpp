#include <algorithm>
#include <cmath>
#include <numeric>

#include "aimle/base/check.h"
#include "aimle/noise/noise.h"
#include "experiments/l2x/word_vectors.h"

namespace aimle::experiments::l2x {
namespace {

constexpr double kSmoothing = 0.75;
constexpr double kMeanSquare = 0.1;
constexpr Key kFirstGuess{.seed = 20230207, .stream = 1};

/// Row-major.
struct Matrix {
  int64_t rows = 0;
  int64_t columns = 0;
  std::vector<float> values;
  Matrix(int64_t r, int64_t c) : rows(r), columns(c), values(static_cast<size_t>(r * c)) {}
  float* row(int64_t i) { return values.data() + i * columns; }
  const float* row(int64_t i) const { return values.data() + i * columns; }
};

/// For every word its column among the contexts, or -1: the most frequent words, ties by order.
std::vector<int32_t> context_columns(const Reviews& train, int64_t vocabulary, int64_t contexts) {
  std::vector<int64_t> frequency(static_cast<size_t>(vocabulary));
  for (const int32_t id : train.words) ++frequency[id];
  std::vector<int32_t> order;
  for (int32_t id = kFirstWord; id < vocabulary; ++id) {
    if (frequency[id] > 0) order.push_back(id);
  }
  std::ranges::stable_sort(order,
                           [&](int32_t a, int32_t b) { return frequency[a] > frequency[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(contexts)));
  std::vector<int32_t> column(static_cast<size_t>(vocabulary), -1);
  for (size_t i = 0; i < order.size(); ++i) column[order[i]] = static_cast<int32_t>(i);
  return column;
}

Matrix count_pairs(const Reviews& train, int64_t vocabulary, const std::vector<int32_t>& column,
                   int64_t contexts, int64_t window) {
  Matrix counts(vocabulary, contexts);
  for (int64_t i = 0; i < train.count(); ++i) {
    const auto review = train.review(i);
    const auto size = static_cast<int64_t>(review.size());
    for (int64_t at = 0; at < size; ++at) {
      float* row = counts.row(review[at]);
      for (int64_t near = std::max<int64_t>(0, at - window);
           near <= std::min(size - 1, at + window); ++near) {
        if (near != at && column[review[near]] >= 0) ++row[column[review[near]]];
      }
    }
  }
  return counts;
}

void counts_to_ppmi(Matrix& m) {
  std::vector<double> smoothed(static_cast<size_t>(m.columns));
  for (int64_t w = 0; w < m.rows; ++w) {
    for (int64_t c = 0; c < m.columns; ++c) smoothed[c] += m.row(w)[c];
  }
  double sum = 0;
  for (double& count : smoothed) sum += count = std::pow(count, kSmoothing);
  for (int64_t w = 0; w < m.rows; ++w) {
    float* row = m.row(w);
    const double total = std::accumulate(row, row + m.columns, 0.0);
    for (int64_t c = 0; c < m.columns; ++c) {
      if (row[c] == 0) continue;
      row[c] = static_cast<float>(std::max(0.0, std::log(row[c] * sum / (total * smoothed[c]))));
    }
  }
}

/// M^T M. Each row of the product is summed by one thread, in the order of the words.
Matrix gram(const Matrix& m, const Executor& executor) {
  Matrix product(m.columns, m.columns);
  parallel_for(executor, m.columns, 100.0 * static_cast<double>(m.rows),
               [&](int64_t begin, int64_t end) {
                 for (int64_t w = 0; w < m.rows; ++w) {
                   const float* row = m.row(w);
                   for (int64_t i = begin; i < end; ++i) {
                     if (row[i] == 0) continue;
                     float* out = product.row(i);
                     for (int64_t j = 0; j < m.columns; ++j) out[j] += row[i] * row[j];
                   }
                 }
               });
  return product;
}

/// a b, row by row.
Matrix multiply(const Matrix& a, const Matrix& b, const Executor& executor) {
  Matrix product(a.rows, b.columns);
  parallel_for(executor, a.rows, 0.2 * static_cast<double>(a.columns * b.columns),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   float* out = product.row(i);
                   for (int64_t k = 0; k < a.columns; ++k) {
                     const float factor = a.row(i)[k];
                     if (factor == 0) continue;
                     const float* row = b.row(k);
                     for (int64_t j = 0; j < b.columns; ++j) out[j] += factor * row[j];
                   }
                 }
               });
  return product;
}

/// Makes the columns of q orthonormal (Gram-Schmidt, twice) and returns their lengths before.
std::vector<double> orthonormalise(Matrix& q) {
  Matrix t(q.columns, q.rows);
  for (int64_t i = 0; i < q.rows; ++i) {
    for (int64_t j = 0; j < q.columns; ++j) t.row(j)[i] = q.row(i)[j];
  }
  const auto dot = [&](const float* a, const float* b) {
    double sum = 0;
    for (int64_t i = 0; i < t.columns; ++i) sum += static_cast<double>(a[i]) * b[i];
    return sum;
  };
  std::vector<double> lengths;
  for (int64_t j = 0; j < t.rows; ++j) {
    float* column = t.row(j);
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t before = 0; before < j; ++before) {
        const auto along = static_cast<float>(dot(column, t.row(before)));
        for (int64_t i = 0; i < t.columns; ++i) column[i] -= along * t.row(before)[i];
      }
    }
    const double length = std::sqrt(dot(column, column));
    lengths.push_back(length);
    const auto inverse = static_cast<float>(length > 1e-12 ? 1 / length : 0);
    for (int64_t i = 0; i < t.columns; ++i) column[i] *= inverse;
  }
  for (int64_t i = 0; i < q.rows; ++i) {
    for (int64_t j = 0; j < q.columns; ++j) q.row(i)[j] = t.row(j)[i];
  }
  return lengths;
}

}  // namespace

WordVectors learn_word_vectors(const Reviews& train, const Vocabulary& vocabulary,
                               const LearnVectors& settings, const Executor& executor) {
  const int64_t size = vocabulary.size();
  const auto column = context_columns(train, size, settings.contexts);
  const int64_t contexts = std::ranges::count_if(column, [](int32_t c) { return c >= 0; });
  AIMLE_CHECK(settings.dimensions >= 1 && settings.dimensions <= contexts && settings.window >= 1,
              "[aimle l2x] expected 1 <= dimensions <= ", contexts,
              " (the context words) and window >= 1 but got ", settings.dimensions, " and ",
              settings.window);
  Matrix m = count_pairs(train, size, column, contexts, settings.window);
  counts_to_ppmi(m);
  const Matrix square = gram(m, executor);
  Matrix q(contexts, settings.dimensions);
  fill_rows({.kind = NoiseKind::kNormal}, kFirstGuess,
            {.count = contexts, .n = settings.dimensions}, q.values.data());
  orthonormalise(q);
  std::vector<double> eigenvalues;
  for (int i = 0; i < settings.iterations; ++i) {
    q = multiply(square, q, executor);
    eigenvalues = orthonormalise(q);
  }
  Matrix vectors = multiply(m, q, executor);
  double squares = 0;
  int64_t words = 0;
  for (int64_t w = kUnknown; w < size; ++w) {
    for (int64_t j = 0; j < settings.dimensions; ++j) {
      const double scale = eigenvalues[j] > 1e-9 ? 1 / std::sqrt(std::sqrt(eigenvalues[j])) : 0;
      float& value = vectors.row(w)[j];
      value = static_cast<float>(value * scale);
      squares += value * value;
    }
    ++words;
  }
  const auto entries = static_cast<double>(std::max<int64_t>(1, words) * settings.dimensions);
  const auto scale =
      static_cast<float>(squares > 0 ? std::sqrt(kMeanSquare * entries / squares) : 1);
  for (float& value : vectors.values) value *= scale;
  std::fill_n(vectors.values.begin(), kUnknown * settings.dimensions, 0.0f);
  return {.dimensions = settings.dimensions, .values = std::move(vectors.values), .missing = 0};
}

}  // namespace aimle::experiments::l2x
