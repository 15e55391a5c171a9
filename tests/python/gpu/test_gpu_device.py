"""Which GPU and which stream the kernels use: that of the tensors, whatever is current."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
import torch
from torch import Tensor

import aimle

pytestmark = pytest.mark.usefixtures("gpu")

# Prints numbers of a layer, forward and backward, on the device that is named.
PROGRAM = """
import sys, torch, aimle
device = torch.device(sys.argv[1])
theta = torch.linspace(-1, 1, 60).view(3, 20).to(device).requires_grad_()
layer = aimle.AIMLE(aimle.TopK(5), nb_samples=4).to(device)
z = layer(theta, key=torch.tensor([1, 2], device=device))
(z * torch.linspace(-1, 1, 20).to(device)).sum().backward()
print(torch.cuda.device_count(), z.sum((0, 1)).tolist(), theta.grad.tolist())
"""


def run_layer(device: torch.device | str, key: Tensor | None = None) -> tuple[Tensor, ...]:
    """z, the gradient and alpha after a step."""
    theta = torch.linspace(-1, 1, 60).view(3, 20).to(device).requires_grad_()
    layer = aimle.AIMLE(aimle.TopK(5), nb_samples=4).to(device)
    z = layer(theta, key=torch.tensor([1, 2]) if key is None else key)
    (z * torch.linspace(-1, 1, 20).to(device)).sum().backward()
    return z.detach(), theta.grad, layer.alpha


def assert_same(got: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> None:
    for a, b in zip(got, expected, strict=True):
        assert torch.equal(a.cpu(), b.cpu())


def in_a_process(device: str, **environment: str) -> tuple[int, str]:
    """The number of GPUs that a process sees, and what PROGRAM prints of the layer."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, device],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    count, _, numbers = done.stdout.partition(" ")
    return int(count), numbers


def test_the_gpu_by_its_number():
    got = run_layer("cuda:0")
    assert all(each.device == torch.device("cuda:0") for each in got)
    assert_same(got, run_layer("cpu"))
    x = torch.randn(4, 9, device="cuda:0")
    assert aimle.solve(aimle.TopK(3), x).device == x.device


def test_two_gpu_streams_at_once():
    """Each call runs on the stream that is current, and so does its backward pass."""
    expected = run_layer("cpu")
    streams = [torch.cuda.Stream(), torch.cuda.Stream(priority=-1)]
    found = []
    for stream in streams:
        with torch.cuda.stream(stream):
            torch.cuda._sleep(10_000_000)
            found.append(run_layer("cuda"))
            assert torch.cuda.current_stream() == stream
    torch.cuda.synchronize()
    for got in found:
        assert_same(got, expected)


def test_the_gpus_that_are_visible():
    _, expected = in_a_process("cpu")
    assert in_a_process("cuda:0", CUDA_VISIBLE_DEVICES=visible()) == (1, expected)
    count, numbers = in_a_process("cpu", CUDA_VISIBLE_DEVICES="")
    assert (count, numbers) == (0, expected)


def visible() -> str:
    """The first GPU of this process, as CUDA_VISIBLE_DEVICES names it."""
    return os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0]


def test_a_second_gpu_while_the_first_is_current():
    if torch.cuda.device_count() < 2:
        pytest.skip("one GPU")
    got = run_layer("cuda:1")
    assert torch.cuda.current_device() == 0
    assert all(each.device == torch.device("cuda:1") for each in got)
    assert_same(got, run_layer("cpu"))
    with pytest.raises(ValueError, match="key on theta's device cuda:1 or on the CPU"):
        run_layer("cuda:1", key=torch.tensor([1, 2], device="cuda:0"))
