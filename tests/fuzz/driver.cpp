// Feeds the readers with inputs made from well-formed ones, always the same for a seed:
//
//   fuzz_readers --inputs 1000000 --seed 1 --corpus tests/fuzz/corpus [--reader npy]
//
// Files of the corpus, in the folder of each reader's name, are read first; `--inputs 0` reads
// nothing else. An input that breaks a reader is written to `found-READER-…` in the current folder:
// put it into the corpus with the fix. Where clang is the compiler, libFuzzer takes the place of
// this driver (CONTRIBUTING.md).
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/fuzz/coverage.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/targets.h"

#if defined(__SANITIZE_ADDRESS__)
extern "C" void __sanitizer_set_death_callback(void (*callback)());
extern "C" const char* __asan_default_options() {
  // A reader that asks for much more memory than its input could fill is broken.
  return "max_allocation_size_mb=256:detect_odr_violation=0:handle_abort=0";
}
#endif

namespace aimle::fuzz {
namespace {

namespace fs = std::filesystem;
constexpr unsigned kMostSeconds = 20;  // for an input

const Target* current_target = nullptr;
const std::string* current_input = nullptr;

void keep_input() {
  if (!current_input) return;
  const size_t number = std::hash<std::string>()(*current_input);
  char name[256];
  std::snprintf(name, sizeof name, "found-%s-%016zx", current_target->name.c_str(), number);
  std::ofstream(name, std::ios::binary) << *current_input;
  std::fprintf(stderr, "The input is in %s\n", name);
  current_input = nullptr;
}

void on_signal(int number) {
  std::fprintf(stderr, number == SIGALRM ? "An input takes too long.\n" : "Aborted.\n");
  keep_input();
  std::_Exit(1);
}

struct Options {
  int64_t inputs = 0;
  uint64_t seed = 1;
  fs::path corpus;
  std::string reader;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    if (name == "--inputs") options.inputs = std::atoll(argv[i + 1]);
    if (name == "--seed") options.seed = static_cast<uint64_t>(std::atoll(argv[i + 1]));
    if (name == "--corpus") options.corpus = argv[i + 1];
    if (name == "--reader") options.reader = argv[i + 1];
  }
  return options;
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<fs::path> paths;
  if (fs::is_directory(folder)) {
    for (const auto& entry : fs::directory_iterator(folder)) paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> contents;
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    contents.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  return contents;
}

void read(const std::string& bytes) {
  current_input = &bytes;
  alarm(kMostSeconds);
  LLVMFuzzerTestOneInput(reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  alarm(0);
  current_input = nullptr;
}

void fuzz(const Target& target, int64_t inputs, const Options& options) {
  const auto start = std::chrono::steady_clock::now();
  current_target = &target;
  select(target);
  forget_branches();
  std::vector<std::string> pool = target.seeds;
  for (std::string& file : files_in(options.corpus / target.name)) pool.push_back(std::move(file));
  const size_t given = pool.size();
  for (const std::string& bytes : pool) read(bytes);
  reached_new_branches();
  std::seed_seq name(target.name.begin(), target.name.end());
  Random random(name);
  random.discard(options.seed);
  for (int64_t i = 0; i < inputs; ++i) {
    std::string bytes = mutated(pool[random() % pool.size()], pool, target.words, random);
    read(bytes);
    if (reached_new_branches()) pool.push_back(std::move(bytes));
  }
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  std::printf("%-18s %9lld inputs  %3zu given  %4zu kept  %5d branches  %6.1f s\n",
              target.name.c_str(), static_cast<long long>(inputs), given, pool.size() - given,
              reached_in_all(), time.count());
  std::fflush(stdout);
}

int run(const Options& options) {
  std::vector<const Target*> chosen;
  for (const Target& target : targets()) {
    if (options.reader.empty() || options.reader == target.name) chosen.push_back(&target);
  }
  if (chosen.empty()) {
    std::fprintf(stderr, "there is no reader %s\n", options.reader.c_str());
    return 2;
  }
  signal(SIGALRM, on_signal);
  signal(SIGABRT, on_signal);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_set_death_callback(keep_input);
#endif
  const auto count = static_cast<int64_t>(chosen.size());
  for (const Target* target : chosen) fuzz(*target, (options.inputs + count - 1) / count, options);
  return 0;
}

}  // namespace
}  // namespace aimle::fuzz

int main(int argc, char** argv) { return aimle::fuzz::run(aimle::fuzz::parse(argc, argv)); }
