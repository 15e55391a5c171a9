#include "experiments/engine/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <vector>

#include "experiments/process/atomic_file.h"
#include "experiments/process/digest.h"
#include "experiments/process/failure.h"

namespace aimle::experiments {
namespace {

// The name of the checksum of the contents in the archive.
constexpr const char* kContents = "contents_xxh64";
// The archive's comment: this, and the checksum of all bytes before it.
constexpr std::string_view kWholeFile = "aimle-xxh64:";
constexpr size_t kDigits = 16;

template <class T>
std::string spell(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

/// Copies on the CPU, so that a view does not save a larger storage.
Checkpoint on_cpu(const Checkpoint& checkpoint) {
  Checkpoint result = checkpoint;
  for (auto& [name, tensors] : result.groups) {
    for (auto& [key, tensor] : tensors) {
      tensor = tensor.detach().to(at::kCPU, false, /*copy=*/true).contiguous();
    }
  }
  return result;
}

/// Over names, types, shapes and values, independent of the file layout. Tensors are on the CPU.
std::string digest_of_contents(const Checkpoint& checkpoint) {
  std::ostringstream text;
  text << std::hexfloat;
  for (const auto& [name, tensors] : checkpoint.groups) {
    for (const auto& [key, tensor] : tensors) {
      const at::Tensor values = tensor.contiguous();
      const std::string_view bytes(static_cast<const char*>(values.data_ptr()), values.nbytes());
      text << name << '\n'
           << key << '\n'
           << values.scalar_type() << values.sizes() << xxh64_hex(bytes) << '\n';
    }
  }
  for (const auto& [name, value] : checkpoint.integers) text << name << '\n' << value << '\n';
  for (const auto& [name, value] : checkpoint.numbers) text << name << '\n' << value << '\n';
  for (const auto& [name, value] : checkpoint.texts) {
    text << name << '\n' << value.size() << '\n' << value << '\n';
  }
  return xxh64_hex(text.str());
}

c10::impl::GenericDict make_dict() {
  return c10::impl::GenericDict(c10::StringType::get(), c10::AnyType::get());
}

c10::impl::GenericDict to_dict(const Checkpoint& checkpoint) {
  c10::impl::GenericDict result = make_dict();
  for (const auto& [name, tensors] : checkpoint.groups) {
    c10::impl::GenericDict group = make_dict();
    for (const auto& [key, tensor] : tensors) group.insert(key, tensor);
    result.insert(name, group);
  }
  for (const auto& [name, value] : checkpoint.integers) result.insert(name, value);
  for (const auto& [name, value] : checkpoint.numbers) result.insert(name, value);
  for (const auto& [name, value] : checkpoint.texts) result.insert(name, value);
  return result;
}

// torch::pickle_save tags dictionaries with their types, which weights_only=True rejects.
std::string serialise(const c10::IValue& value) {
  std::string pickled;
  torch::jit::Pickler pickler([&](const char* data, size_t size) { pickled.append(data, size); },
                              nullptr, nullptr, nullptr, nullptr, /*tag_aggregates=*/false);
  pickler.protocol();
  pickler.pushIValue(value);
  pickler.stop();

  std::string file;
  caffe2::serialize::PyTorchStreamWriter writer([&](const void* data, size_t size) {
    file.append(static_cast<const char*>(data), size);
    return size;
  });
  writer.writeRecord("data.pkl", pickled.data(), pickled.size());
  size_t number = 0;
  for (const at::Tensor& tensor : pickler.tensorData()) {
    const torch::jit::WriteableTensorData data = torch::jit::getWriteableTensorData(tensor);
    writer.writeRecord("data/" + std::to_string(number++), data.data(), data.sizeInBytes());
  }
  writer.writeEndOfFile();
  return file;
}

void take(Checkpoint& checkpoint, const std::string& name, const c10::IValue& value) {
  if (value.isInt()) checkpoint.integers[name] = value.toInt();
  if (value.isDouble()) checkpoint.numbers[name] = value.toDouble();
  if (value.isString()) checkpoint.texts[name] = value.toStringRef();
  if (!value.isGenericDict()) return;
  auto& group = checkpoint.groups[name];
  for (const auto& entry : value.toGenericDict()) {
    group[entry.key().toStringRef()] = entry.value().toTensor();
  }
}

// A ZIP archive may end with a comment; if there is none yet, its length is the last two bytes.
// Every reader of ZIP files skips it, so `torch.load` and `unzip` still read checkpoints.
std::string sealed(std::string archive) {
  archive[archive.size() - 2] = static_cast<char>(kWholeFile.size() + kDigits);
  archive += kWholeFile;
  return archive + xxh64_hex(archive);
}

/// Throws Failure unless every byte is unchanged.
void check_seal(const std::filesystem::path& path, std::string_view bytes) {
  const size_t end = bytes.size() - std::min(bytes.size(), kDigits);
  if (!bytes.substr(0, end).ends_with(kWholeFile)) {
    throw Failure(path.string() +
                  " has no checksum: it is damaged, or was written by an earlier version");
  }
  if (bytes.substr(end) != xxh64_hex(bytes.substr(0, end))) {
    throw Failure(path.string() + " is damaged: its checksum does not match its contents");
  }
}

std::string read_file(const std::filesystem::path& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  if (file) bytes << file.rdbuf();
  if (!file || file.bad()) {
    throw Failure("cannot read " + path.string() + ": " +
                  (errno == 0 ? "reading failed" : std::strerror(errno)));
  }
  return std::move(bytes).str();
}

Checkpoint parse(const std::filesystem::path& path, const std::string& bytes) {
  Checkpoint checkpoint;
  try {
    const std::vector<char> archive(bytes.begin(), bytes.end());
    for (const auto& entry : torch::jit::pickle_load(archive).toGenericDict()) {
      take(checkpoint, entry.key().toStringRef(), entry.value());
    }
  } catch (const c10::Error& error) {
    throw Failure(path.string() +
                  " is not a checkpoint of this program: " + error.what_without_backtrace());
  }
  return checkpoint;
}

/// The error of the file; empty if it was read.
std::string try_to_load(const std::filesystem::path& path, Checkpoint& checkpoint) {
  try {
    checkpoint = load_checkpoint(path);
    return "";
  } catch (const Failure& failure) {
    return failure.what();
  }
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                     const std::filesystem::path& previous) {
  Checkpoint saved = on_cpu(checkpoint);
  saved.texts[kContents] = digest_of_contents(saved);
  write_atomically(path, sealed(serialise(to_dict(saved))), previous);
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  const std::string bytes = read_file(path);
  check_seal(path, bytes);
  Checkpoint checkpoint = parse(path, bytes);
  const auto digest = checkpoint.texts.extract(kContents);
  if (digest.empty() || digest.mapped() != digest_of_contents(checkpoint)) {
    throw Failure(path.string() + " is damaged: its contents are not those that were saved");
  }
  return checkpoint;
}

std::optional<FoundCheckpoint> find_checkpoint(const std::filesystem::path& newest,
                                               const std::filesystem::path& previous) {
  const bool is_there = std::filesystem::exists(newest);
  const bool has_previous = std::filesystem::exists(previous);
  if (!is_there && !has_previous) return {};
  FoundCheckpoint found;
  const std::string fault =
      is_there ? try_to_load(newest, found.checkpoint) : "there is no " + newest.string();
  if (fault.empty()) return found;
  found.fault = fault;
  const std::string fault_of_previous =
      has_previous ? try_to_load(previous, found.checkpoint) : "there is no " + previous.string();
  if (fault_of_previous.empty()) return found;
  throw Failure(fault + "; " + fault_of_previous +
                ": the run cannot continue; start again with --force, or in another folder with "
                "--out");
}

void restore(const std::map<std::string, at::Tensor>& into, const Checkpoint& from,
             const std::string& group) {
  const at::NoGradGuard no_grad;
  const auto found = from.groups.find(group);
  static const std::map<std::string, at::Tensor> kNone;
  const auto& saved = found == from.groups.end() ? kNone : found->second;
  for (const auto& [name, tensor] : saved) {
    if (!into.contains(name)) throw Failure("checkpoint: " + group + " has no tensor " + name);
  }
  for (const auto& [name, tensor] : into) {
    const auto entry = saved.find(name);
    if (entry == saved.end()) throw Failure("checkpoint: " + group + " lacks the tensor " + name);
    const at::Tensor& value = entry->second;
    if (value.sizes() != tensor.sizes() || value.scalar_type() != tensor.scalar_type()) {
      throw Failure("checkpoint: " + group + "." + name + " is " + spell(value.sizes()) + " " +
                    spell(value.scalar_type()) + ", expected " + spell(tensor.sizes()) + " " +
                    spell(tensor.scalar_type()));
    }
    at::Tensor target = tensor.detach();  // shares the storage
    target.copy_(value);
  }
}

}  // namespace aimle::experiments
