"""The reductions of `sharing.py`: one message per process group and training step."""

from __future__ import annotations

import weakref
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed import ProcessGroup
from torch.nn.parallel import DistributedDataParallel

from aimle.state.sharing import WAITING, SharedState, in_backward, sharing_layers

# The layers of a DDP module that share their state, and those called since the last reduction.
layers_of: weakref.WeakKeyDictionary[nn.Module, list[SharedState]] = weakref.WeakKeyDictionary()
_called: weakref.WeakKeyDictionary[ProcessGroup, list[Any]] = weakref.WeakKeyDictionary()


def _message_device(group: ProcessGroup, waiting: list[Tensor]) -> torch.device:
    """The device on which the group can reduce: the layers' own, if possible."""
    able = group._device_types
    devices = [each.device for each in waiting]
    return next((one for one in devices if one in able or torch.device(one.type) in able), able[0])


def _reduce_in(group: ProcessGroup, layers: list[SharedState | None]) -> None:
    """One message; None stands for a layer that was deleted and has no counts."""
    nothing = torch.zeros(WAITING, dtype=torch.float64)
    waiting = [nothing if layer is None else layer._waiting() for layer in layers]
    device = _message_device(group, waiting)
    message = torch.cat([each.to(device) for each in waiting])
    dist.all_reduce(message, group=group)
    for layer, counts in zip(layers, message.split(WAITING), strict=True):
        if layer is not None:
            layer._apply_counts(counts.to(layer._waiting().device))


@torch.no_grad()
def reduce(layers: list[SharedState]) -> None:
    """One message for every group, in the order of their first layers."""
    groups: dict[ProcessGroup, list[SharedState | None]] = {}
    for layer in layers:
        group = layer._sharing.group
        if group is not None:
            groups.setdefault(group, []).append(layer)
    for group, members in groups.items():
        _reduce_in(group, members)


@torch.compiler.disable
def before_call(layer: SharedState) -> None:
    """For a layer that is not under DDP: reduces if this call is the first of a step."""
    sharing = layer._sharing
    group = sharing.group
    if group is None or not torch.is_grad_enabled():
        return
    if in_backward():
        _refuse_reentrant(layer)
        return
    sharing.called = True
    called = _called.setdefault(group, [])
    if any(each() is layer for each in called):
        with torch.no_grad():
            _reduce_in(group, [each() for each in called])
        called.clear()
    called.append(weakref.ref(layer))


def _refuse_reentrant(layer: SharedState) -> None:
    """Raises RuntimeError if a layer is called in backward only: its counts would be lost."""
    if not layer._sharing.called:
        raise RuntimeError(
            f"[aimle.{type(layer).__name__}] layers that share their state with other processes do "
            "not support checkpoint(..., use_reentrant=True), which hides the training step: use "
            "use_reentrant=False, DistributedDataParallel, or process_group=None"
        )


@torch.compiler.disable
def before_ddp_forward(ddp: DistributedDataParallel, args: object) -> None:
    layers = layers_of.get(ddp)
    if layers is None:  # the module was copied or unpickled
        layers = layers_of[ddp] = sharing_layers(ddp.module)
    if not torch.is_grad_enabled() or in_backward():
        return
    for layer in layers:
        layer._share_under(ddp)
    # Processes without batches left would not answer, and DDP broadcasts the state itself.
    if any(layer.training for layer in layers) and not ddp._join_config.enable:
        reduce(layers)
