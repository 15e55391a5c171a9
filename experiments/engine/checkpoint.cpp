#include "experiments/engine/checkpoint.h"

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <c10/util/Exception.h>
#include <caffe2/serialize/inline_container.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/jit/serialization/pickler.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "experiments/run/atomic_file.h"
#include "experiments/run/failure.h"

namespace aimle::experiments {
namespace {

c10::impl::GenericDict make_dict() {
  return c10::impl::GenericDict(c10::StringType::get(), c10::AnyType::get());
}

c10::impl::GenericDict to_dict(const Checkpoint& checkpoint) {
  c10::impl::GenericDict result = make_dict();
  for (const auto& [name, tensors] : checkpoint.groups) {
    c10::impl::GenericDict group = make_dict();
    // A copy, so that no view drags a larger storage into the file.
    for (const auto& [key, tensor] : tensors) {
      group.insert(key, tensor.detach().to(at::kCPU, false, /*copy=*/true).contiguous());
    }
    result.insert(name, group);
  }
  for (const auto& [name, value] : checkpoint.integers) result.insert(name, value);
  for (const auto& [name, value] : checkpoint.numbers) result.insert(name, value);
  for (const auto& [name, value] : checkpoint.texts) result.insert(name, value);
  return result;
}

// torch::pickle_save tags dictionaries with their types, which weights_only=True refuses.
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

template <class T>
std::string spell(const T& value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

}  // namespace

void save_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  write_atomically(path, serialise(to_dict(checkpoint)));
}

Checkpoint load_checkpoint(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure("cannot read " + path.string());
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  Checkpoint checkpoint;
  try {
    for (const auto& entry : torch::jit::pickle_load(bytes).toGenericDict()) {
      take(checkpoint, entry.key().toStringRef(), entry.value());
    }
  } catch (const c10::Error& error) {
    throw Failure(path.string() +
                  " is no checkpoint of this program: " + error.what_without_backtrace());
  }
  return checkpoint;
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
