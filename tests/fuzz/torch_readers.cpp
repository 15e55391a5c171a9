// The readers that need Torch: checkpoints, estimators and their settings.
#include <ATen/Functions.h>
#include <c10/util/Exception.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "aimle/torch/estimator.h"
#include "experiments/data/gzip.h"
#include "experiments/engine/checkpoint.h"
#include "experiments/gradient/contestant.h"
#include "experiments/process/failure.h"
#include "tests/fuzz/targets.h"

namespace aimle::fuzz {
namespace {

/// A file in memory that has a path.
class MemoryFile {
 public:
  MemoryFile() : file_(memfd_create("fuzz", 0)) {}
  ~MemoryFile() { close(file_); }
  MemoryFile(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }
  void write(const std::string& bytes) const {
    const bool written = ftruncate(file_, 0) == 0 && pwrite(file_, bytes.data(), bytes.size(), 0) ==
                                                         static_cast<ssize_t>(bytes.size());
    if (!written) throw Broken{"no file in memory"};
  }

 private:
  int file_;
};

std::string sample_checkpoint() {
  experiments::Checkpoint checkpoint;
  checkpoint.groups["model"]["weight"] = at::arange(6, at::kFloat).view({2, 3});
  checkpoint.groups["optimizer"]["step"] = at::ones({}, at::kLong);
  checkpoint.integers["epoch"] = 3;
  checkpoint.numbers["best"] = 0.5;
  checkpoint.texts["config"] = "{}";
  const std::string path = "/tmp/aimle_fuzz_checkpoint_" + std::to_string(getpid());
  experiments::save_checkpoint(path, checkpoint);
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  unlink(path.c_str());
  return bytes;
}

const std::string& checkpoint_sample() {
  static const std::string sample = sample_checkpoint();
  return sample;
}

/// Any other bytes than those that were saved are refused.
void read_checkpoint(const std::string& bytes) {
  static const MemoryFile file;
  file.write(bytes);
  experiments::load_checkpoint(file.path());
  if (bytes != checkpoint_sample()) throw Broken{"a damaged checkpoint is read"};
}

/// name=value on every line.
void read_estimator_settings(const std::string& bytes) {
  EstimatorOptions options;
  experiments::data::LineReader reader(kFile, bytes);
  size_t good = 0;
  for (std::string line; reader.next(line);) {
    const size_t equals = std::min(line.find('='), line.size());
    try {
      set_option(options, line.substr(0, equals), line.substr(std::min(equals + 1, line.size())));
      ++good;
    } catch (const c10::ValueError&) {  // the next line may be a good one
    }
  }
  if (given_options(options).size() > good) throw Broken{"a setting was not given"};
}

/// The user is shown the message without its backtrace, as a Failure's.
void read_contestant(const std::string& bytes) {
  try {
    const experiments::Contestant found = experiments::parse_contestant(bytes);
    if (!found.label.starts_with(found.name)) throw Broken{"a label without its name"};
    if (experiments::parse_contestant(found.label).label != found.label) {
      throw Broken{"a label is not read back"};
    }
  } catch (const c10::ValueError& error) {
    throw experiments::Failure(error.what_without_backtrace());
  } catch (const c10::TypeError& error) {
    throw experiments::Failure(error.what_without_backtrace());
  }
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> kTargets = {
      {"checkpoint", read_checkpoint, {checkpoint_sample()}, {"PK\x01\x02", "PK\x05\x06"}},
      {"estimator_settings",
       read_estimator_settings,
       {"nb_samples=3\nlambda=0.5\nnoise=sum_of_gamma:3:10\nalpha_range=0:inf\n",
        "reference=true\ntarget-norm=1e3\nscope=batch\n"},
       {"inf", "nan", "-1", "1e400", ":", "9223372036854775808", "sum_of_gamma:", "gumbel"}},
      {"contestant",
       read_contestant,
       {"aimle", "imle_central:lambda=0.1", "sfe:baseline=leave_one_out", "thresholds:order=first",
        "aimle:target_norm=3:scope=batch", "dpo:noise=gumbel"},
       {":", "=", "lambda", "inf", "nan", "-1", "1e400",
        "noise=", "nb_samples=", "temperature=", "alpha_range=0:inf"}}};
  return kTargets;
}

}  // namespace aimle::fuzz
