"""examples/custom_solver with its kernel: a solver outside the tree on a GPU."""

import subprocess
import sys
from pathlib import Path

import torch
from repository import ROOT

EXAMPLE = ROOT / "examples/custom_solver"

USE = """
import sys, torch, aimle

assert aimle.load_library(sys.argv[1]) == ["viterbi"]
for length, labels, dtype in (
    (2, 1, torch.float32), (4, 3, torch.float64), (9, 40, torch.float32), (9, 90, torch.float32)
):
    chain = aimle.solver("viterbi", length=length, labels=labels)
    torch.manual_seed(length)
    theta = torch.randn(65, length - 1, labels, labels, dtype=dtype)
    mask = torch.rand(theta.shape) < 0.7
    mask[0], theta[1, 0, 0, 0] = False, torch.nan
    for given in (None, mask):
        there = None if given is None else given.cuda()
        for one, other in zip(
            aimle.solve(chain, theta, mask=given, return_status=True),
            aimle.solve(chain, theta.cuda(), mask=there, return_status=True),
        ):
            assert torch.equal(one.nan_to_num(7), other.cpu().nan_to_num(7)), (length, labels)

    results = []
    for device in ("cpu", "cuda"):
        layer = aimle.AIMLE(chain, nb_samples=3).to(device)
        leaf = theta.nan_to_num(0).to(device).requires_grad_()
        z = layer(leaf, key=torch.tensor([1, 2], device=device))
        (z * torch.linspace(-1, 1, labels, dtype=dtype, device=device)).sum().backward()
        results.append((z.detach().cpu(), leaf.grad.cpu(), layer.alpha.cpu()))
    assert all(map(torch.equal, *results)), (length, labels)
"""


def run(*command: object) -> None:
    parts = [str(part) for part in command]
    result = subprocess.run(parts, capture_output=True, text=True, check=False, cwd=ROOT / "python")
    assert result.returncode == 0, f"{parts}\n{result.stdout}\n{result.stderr}"


def test_its_kernel_gives_the_bits_of_the_cpu(gpu: torch.device, tmp_path: Path):
    prefix, build = tmp_path / "prefix", tmp_path / "build"
    run("cmake", "--install", ROOT / "build/release", "--prefix", prefix)
    run("cmake", "-S", EXAMPLE, "-B", build, "-G", "Ninja", "-DWITH_CUDA=ON",
        "-DCMAKE_CUDA_ARCHITECTURES=native",
        f"-DCMAKE_PREFIX_PATH={prefix};{torch.utils.cmake_prefix_path}")  # fmt: skip
    run("cmake", "--build", build, "--target", "viterbi")
    run(sys.executable, "-c", USE, build / "libviterbi.so")
