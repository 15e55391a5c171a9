"""Logs the statistics of layers: one line in the training loop.

writer = torch.utils.tensorboard.SummaryWriter()
...
aimle.log_stats(model, writer, step)  # TensorBoard
aimle.log_stats(model, "stats.jsonl", step)  # a line of JSON
run.log(aimle.log_stats(model), step=step)  # Weights & Biases: run = wandb.init(…)
"""

import io
import json
import math
import os
from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import nn

from aimle.settings.checks import check_int, check_type, refuse_type


class ScalarWriter(Protocol):
    """What TensorBoard's ``SummaryWriter`` has."""

    def add_scalar(self, tag: str, value: float, step: int, /) -> object: ...


Write = Callable[[str, float, int], object] | ScalarWriter | str | os.PathLike[str]


_START = b'{"step": '


def _end_last_line(lines: io.FileIO) -> None:
    """Ends a last line without a newline, or removes it if it is half of a line of ours, which a
    killed process leaves."""
    if lines.tell() == 0:
        return
    lines.seek(-1, os.SEEK_END)
    if lines.read(1) == b"\n":
        return
    lines.seek(0)
    content = lines.readall()
    start = content.rfind(b"\n") + 1
    last = content[start:]
    if last[: len(_START)] == _START[: len(last)] and not last.endswith(b"}"):
        lines.truncate(start)
    else:
        lines.write(b"\n")


def _append_line(file: str | os.PathLike[str], step: int, values: dict[str, float]) -> None:
    # JSON has no infinity.
    shown = {name: value if math.isfinite(value) else None for name, value in values.items()}
    line = json.dumps({"step": step, **shown}).encode() + b"\n"
    with open(file, "a+b", buffering=0) as lines:
        if lines.seekable():
            _end_last_line(lines)
        written = 0
        try:
            while written < len(line):
                written += lines.write(line[written:])
        except OSError:  # a full disk
            if written > 0 and lines.seekable():
                lines.truncate(lines.tell() - written)
            raise


def _check_write(write: object) -> None:
    is_file = write is None or isinstance(write, str | os.PathLike)
    if not (is_file or callable(getattr(write, "add_scalar", write))):
        expected = (
            "write to be a function write(name, value, step), a SummaryWriter, the path of a file "
            "or None"
        )
        refuse_type("log_stats", expected, write)


def log_stats(
    module: nn.Module, write: Write | None = None, step: int = 0, prefix: str = "aimle"
) -> dict[str, float]:
    """Writes every value of ``stats()`` of the module's layers, and returns them by name.

    module: a layer, or a model that contains some. Names are `prefix/alpha`, or include the path of
    the layer inside the model: `prefix/encoder.choose/alpha`. Values that are not yet known (NaN
    before the first backward pass) are left out.

    write: a function ``write(name, value, step)``, a ``SummaryWriter`` of TensorBoard, or the path
    of a file, to which a line of JSON is appended: ``{"step": 100, "aimle/alpha": 0.5, …}``, or
    nothing if the disk is full. None only returns the values, for loggers that take a dict, such as
    Weights & Biases.

    Uses one transfer from the device. In distributed training, alpha, gbar and updates cover all
    processes, the other values only this process.
    """
    check_type("log_stats", module, nn.Module, "module to be a torch.nn.Module")
    _check_write(write)
    step = check_int("log_stats", "step", step, -(2**63))
    check_type("log_stats", prefix, str, "prefix to be a str")
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
    known = {
        name: value for (name, _), value in zip(found, values, strict=True) if not math.isnan(value)
    }
    if isinstance(write, str | os.PathLike):
        _append_line(write, step, known)
    elif write is not None:
        write_one: Any = getattr(write, "add_scalar", write)
        for name, value in known.items():
            write_one(name, value, step)
    return known
