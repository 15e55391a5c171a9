"""Logs the statistics of layers: one line in the training loop.

    from torch.utils.tensorboard import SummaryWriter
    writer = SummaryWriter()
    ...
    aimle.log_stats(layer, writer.add_scalar, step)

Any callable ``write(name, value, step)`` works.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn


def log_stats(
    module: nn.Module, write: Callable[[str, float, int], object], step: int, prefix: str = "aimle"
) -> dict[str, float]:
    """Passes every value of ``stats()`` of the module's layers to write(name, value, step).

    module: a layer, or a model that contains some. Names are `prefix/alpha`, or include the path of
    the layer inside the model: `prefix/encoder.choose/alpha`. Values that are not yet known (NaN
    before the first backward pass) are left out. Uses one transfer from the device, and returns the
    values written. In distributed training, alpha, gbar and updates cover all processes, the other
    values only this process.
    """
    found: list[tuple[str, torch.Tensor]] = []
    for path, layer in module.named_modules():
        stats = getattr(layer, "stats", None)
        if not callable(stats):
            continue
        start = "/".join(filter(None, (prefix, path)))
        found += [(f"{start}/{name}", value) for name, value in stats().items()]
    if not found:
        return {}
    values = torch.stack([value.detach().double().reshape(()) for _, value in found]).tolist()
    written = {
        name: value for (name, _), value in zip(found, values, strict=True) if not math.isnan(value)
    }
    for name, value in written.items():
        write(name, value, step)
    return written
