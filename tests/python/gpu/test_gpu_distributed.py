"""A layer that shares its state over NCCL, in a group of one process."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
from distributed_cases import TARGETS, N, batches, make_layer, state_of
from torch import Tensor

import aimle

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.fixture
def group(gpu: torch.device, tmp_path: Path) -> Iterator[dist.ProcessGroup]:
    if not dist.is_nccl_available():
        pytest.skip("no NCCL")
    store = dist.FileStore(str(tmp_path / "store"), 1)
    dist.init_process_group("nccl", store=store, rank=0, world_size=1)
    dist.all_reduce(torch.zeros(1, device=gpu))  # connects, which may wait
    yield dist.group.WORLD
    dist.destroy_process_group()


def step(layer: aimle.AIMLE, x: Tensor, d: Tensor) -> Tensor:
    theta = x.detach().requires_grad_()
    (layer(theta).squeeze(1) * d).sum().backward()
    return theta.grad


@pytest.mark.parametrize("solver", ["native", "callable"])
@pytest.mark.parametrize("target", TARGETS)
def test_shared_state_on_a_gpu(
    solver: str, target: str, group: dist.ProcessGroup, gpu: torch.device
):
    """State and gradients have the bits of a layer of this process alone."""
    alone = make_layer(solver, target).to(gpu)
    shared = make_layer(solver, target, process_group=group).to(gpu)
    for x, d in batches():
        x, d = x.to(gpu), d.to(gpu)
        expected, seen = step(alone, x, d), step(shared, x, d)
        assert torch.equal(expected, seen)
        assert shared.updates == alone.updates - 1
    aimle.reduce_state(shared)
    assert state_of(shared) == state_of(alone)


def test_reductions_do_not_wait_for_the_host_on_a_gpu(group: dist.ProcessGroup, gpu: torch.device):
    layer = make_layer(process_group=group).to(gpu)
    x, d = torch.randn(2, 8, N, device=gpu)
    step(layer, x, d)
    step(layer, x, d)
    torch.cuda.synchronize()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3):
            step(layer, x, d)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert layer.updates == 4
