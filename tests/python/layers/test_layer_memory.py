"""Memory of a layer: only z, dy and one bit per entry grow with the samples.

Tensors are counted by PyTorch's allocator; the core's own scratch is not a tensor, so a second test
watches the process from outside.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

import aimle

B, N = 20, 50
THETA_BYTES = 4 * B * N


def peak_of(call, folder: Path) -> int:
    """The most bytes that `call` had allocated in tensors at once."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        call()
    file = folder / "trace.json"
    profiler.export_chrome_trace(str(file))
    events = [
        event
        for event in json.loads(file.read_text())["traceEvents"]
        if event.get("name") == "[memory]"
    ]
    assert events, "the profiler saw no allocation"
    now = peak = 0
    for event in sorted(events, key=lambda event: event["ts"]):
        now += event["args"]["Bytes"]
        peak = max(peak, now)
    return peak


def passes(samples: int, **settings):
    """forward and backward of a layer, ready to be called; dy exists already."""
    layer = aimle.AIMLE(
        aimle.TopK(5),
        nb_samples=samples,
        noise=aimle.SumOfGamma(5),
        target=aimle.AdaptiveTarget(0.5),
        **settings,
    )
    theta, key = torch.randn(B, N, requires_grad=True), torch.tensor([1, 2])
    z = layer(theta, key=key)
    dy = torch.randn(z.shape)

    def forward() -> Tensor:
        return layer(theta, key=key)

    def backward() -> Tensor:
        return torch.autograd.grad(z, theta, dy, retain_graph=True)[0]

    return forward, backward


@pytest.mark.parametrize("output", ["samples", "flat", "mean"])
@pytest.mark.parametrize("symmetric", [True, False], ids=["central", "forward"])
def test_backward_allocates_the_same_for_any_number_of_samples(
    output: str, symmetric: bool, tmp_path: Path
):
    peaks = [
        peak_of(passes(samples, output=output, symmetric_perturbation=symmetric)[1], tmp_path)
        for samples in (1, 1000)
    ]
    assert peaks[0] == peaks[1]
    assert THETA_BYTES <= peaks[1] <= THETA_BYTES + 4096


GRADIENTS = {
    "sum": lambda z: torch.ones(()).to(z.dtype).expand(z.shape),
    "mean over samples": lambda z: torch.randn(B, 1, N).to(z.dtype).expand(z.shape),
    "samples first": lambda z: torch.randn(z.shape[1], B, N).to(z.dtype).transpose(0, 1),
    "plain": lambda z: torch.randn(z.shape).to(z.dtype),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("layout", GRADIENTS)
def test_backward_copies_no_gradient_of_all_samples(
    layout: str, dtype: torch.dtype, tmp_path: Path
):
    peaks = []
    for samples in (1, 1000):
        layer = aimle.AIMLE(aimle.TopK(5), nb_samples=samples, target=aimle.AdaptiveTarget(0.5))
        theta = torch.randn(B, N).to(dtype).requires_grad_()
        z = layer(theta)
        dy = GRADIENTS[layout](z)
        peaks.append(
            peak_of(lambda z=z, theta=theta, dy=dy: torch.autograd.grad(z, theta, dy), tmp_path)
        )
    assert peaks[0] == peaks[1] <= 3 * THETA_BYTES + 4096


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_forward_in_half_precision_makes_no_wider_result(dtype: torch.dtype, tmp_path: Path):
    layer = aimle.AIMLE(aimle.TopK(5), nb_samples=1000)
    theta = torch.randn(B, N).to(dtype)
    result = 1000 * THETA_BYTES // 2
    assert result <= peak_of(lambda: layer(theta), tmp_path) <= result + 2 * THETA_BYTES + 4096


@pytest.mark.parametrize("symmetric", [True, False], ids=["central", "forward"])
def test_forward_allocates_its_result_and_one_bit_an_entry(symmetric: bool, tmp_path: Path):
    for output, size in (("samples", 1000), ("flat", 1000), ("mean", 1)):
        forward, _ = passes(1000, output=output, symmetric_perturbation=symmetric)
        result = size * THETA_BYTES
        bits = 0 if symmetric else B * 1000 * ((N + 7) // 8)
        peak = peak_of(forward, tmp_path)
        assert result + bits <= peak <= result + bits + 4096


def kept_between(samples: int, **settings) -> int:
    """Bytes of the tensors that the graph holds, theta's own storage apart."""
    kept: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    layer = aimle.AIMLE(aimle.TopK(5), nb_samples=samples, **settings)
    theta = torch.randn(B, N, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        layer(theta)
    kept.pop(theta.untyped_storage().data_ptr())
    return sum(kept.values())


def test_the_graph_keeps_no_samples():
    assert kept_between(1000) == kept_between(1) <= 64
    bits = B * 1000 * ((N + 7) // 8)
    assert bits <= kept_between(1000, symmetric_perturbation=False) <= bits + 64


PROGRAM = """
import resource, sys, torch, aimle
symmetric, output = sys.argv[1] == "central", sys.argv[2]

def high_water():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

def forget():
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return high_water()

def growth(samples):
    torch.manual_seed(0)
    layer = aimle.AIMLE(aimle.TopK(5), nb_samples=samples, symmetric_perturbation=symmetric,
                        output=output, target=aimle.AdaptiveTarget(0.5))
    theta = torch.randn(64, 256, requires_grad=True)
    before = forget()
    z = layer(theta)
    forward = high_water() - before
    dy = torch.ones(z.shape)
    before = forget()
    torch.autograd.grad(z, theta, dy)
    return forward, high_water() - before

growth(1)
print(*growth(1), *growth(1000))
"""


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK), reason="no /proc/self/clear_refs to reset"
)
@pytest.mark.parametrize("output", ["samples", "mean"])
def test_the_process_does_not_grow_with_the_samples(output: str):
    """Resident memory of forward and backward, in KiB; all samples would be 64 MiB."""
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, "central", output],
        env=os.environ | {"PYTHONPATH": str(Path(aimle.__file__).parents[1])},
        capture_output=True,
        text=True,
        check=True,
    )
    forward_one, backward_one, forward, backward = map(int, result.stdout.split())
    result_size = 64 * 256 * 4 // 1024 * (1000 if output == "samples" else 1)
    assert forward <= result_size + forward_one + 4096
    assert backward <= backward_one + 4096
