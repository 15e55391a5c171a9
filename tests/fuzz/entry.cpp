#include <cstdio>
#include <cstdlib>
#include <exception>

#include "experiments/data/file_error.h"
#include "tests/fuzz/targets.h"

namespace aimle::fuzz {
namespace {

const Target* selected = nullptr;

[[noreturn]] void report(const Target& target, const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", target.name.c_str(), what.c_str());
  std::abort();
}

void check_message(const Target& target, const std::string& message, const std::string& bytes) {
  if (message.size() > 500 || message.find('\n') != std::string::npos) {
    report(target, "is not one short line: " + message);
  }
  const std::string library = "json.exception";
  if (message.find(library) != std::string::npos && bytes.find(library) == std::string::npos) {
    report(target, "quotes the library: " + message);
  }
}

}  // namespace

void read_one(const Target& target, const std::string& bytes) {
  try {
    target.read(bytes);
  } catch (const experiments::data::FileError& error) {
    const std::string message = error.what();
    if (!message.starts_with(kFile)) report(target, "does not name the file: " + message);
    check_message(target, message, bytes);
  } catch (const experiments::Failure& error) {
    check_message(target, error.what(), bytes);
  } catch (const Broken& broken) {
    report(target, broken.what);
  } catch (const std::exception& error) {
    report(target, std::string("not a Failure: ") + error.what());
  }
}

void select(const Target& target) { selected = &target; }

}  // namespace aimle::fuzz

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  if (!aimle::fuzz::selected) {
    const char* name = std::getenv("AIMLE_FUZZ_READER");
    for (const auto& target : aimle::fuzz::targets()) {
      if (name && target.name == name) aimle::fuzz::select(target);
    }
    if (!aimle::fuzz::selected) {
      std::fprintf(stderr, "expected the name of a reader in AIMLE_FUZZ_READER\n");
      std::exit(2);
    }
  }
  aimle::fuzz::read_one(*aimle::fuzz::selected,
                        std::string(reinterpret_cast<const char*>(data), size));
  return 0;
}
