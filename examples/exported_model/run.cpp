// Runs a model from export.py, with another batch size than it was exported with.
#include <ATen/Functions.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: run MODEL.pt2\n");
    return 1;
  }
  torch::inductor::AOTIModelPackageLoader model(argv[1]);
  const at::Tensor x = at::arange(30.0F).reshape({5, 6}).sin();
  const at::Tensor z = model.run({x}).at(0);
  for (const at::Tensor& row : z.unbind()) {
    for (const at::Tensor& entry : row.unbind()) std::printf("%d ", entry.item<int>());
    std::printf("\n");
  }
}
