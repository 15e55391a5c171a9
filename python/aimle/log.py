"""What a running layer sees, in a log: one line in the training loop.

    from torch.utils.tensorboard import SummaryWriter
    writer = SummaryWriter()
    ...
    aimle.log_stats(layer, writer.add_scalar, step)

Any callable ``write(name, value, step)`` will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import nn


def log_stats(
    module: nn.Module, write: Callable[[str, float, int], object], step: int, prefix: str = "aimle"
) -> dict[str, float]:
    """Hands every number of ``stats()`` of the module's layers to write(name, value, step).

    module: a layer, or a model that holds some; names are `prefix/alpha`, or with the path of the
    layer inside the model, `prefix/encoder.choose/alpha`. What is not yet known (NaN before the
    first backward pass) is left out. One transfer from the device; what was written is returned.
    In distributed training alpha, gbar and updates are those of all processes, the other numbers
    those of this one.
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
