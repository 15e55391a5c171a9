"""Compiles a model in eval mode, including its layer, into one file for run.cpp.

python examples/exported_model/export.py model.pt2
"""

import sys

import torch

import aimle

torch.manual_seed(0)
layer = aimle.AIMLE(aimle.TopK(2), output="mean")
model = torch.nn.Sequential(torch.nn.Linear(6, 6), layer).eval()  # normally a trained model

batch = torch.export.Dim("batch")
exported = torch.export.export(model, (torch.randn(4, 6),), dynamic_shapes=({0: batch},))
torch._inductor.aoti_compile_and_package(exported, package_path=sys.argv[1])

x = torch.arange(30.0).reshape(5, 6).sin()
for row in model(x).int().tolist():  # what run.cpp prints
    print(*row)
