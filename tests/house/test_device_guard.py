"""Every kernel is launched with its tensors' device made current, and on its current stream.

The Torch room enters the kernels through `DeviceContext` alone, whose guard is the first thing it
makes. Kernels keep nothing that belongs to one device from call to call.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TORCH_ROOM = sorted((ROOT / "aimle" / "torch").rglob("*.cpp"))
KERNELS = sorted(
    path for path in (ROOT / "aimle" / "cuda").rglob("*") if path.suffix in (".cu", ".cuh", ".h")
)
# Of the namespace aimle::cuda: those that launch nothing.
HARMLESS = {"require_kernels", "is_capturing", "kernels_of"}


def functions_of(text: str) -> list[str]:
    """The parts of a file between the lines that close a function or a member function."""
    return re.split(r"^(?:  )?\}\n", text, flags=re.MULTILINE)


def launches_in(function: str) -> set[str]:
    called = set(re.findall(r"\bcuda::([a-z_]+)\(", function)) - HARMLESS
    return called | set(re.findall(r"kernels_of\(\w+\)\s*\.(\w+)\(", function))


def test_launches_are_found():
    found = {name for path in TORCH_ROOM for name in launches_in(path.read_text())}
    assert {"forward", "backward", "fill_noise", "map_rows", "sample_rows", "symmetrise"} <= found


@pytest.mark.parametrize("path", TORCH_ROOM, ids=lambda path: path.name)
def test_every_launch_has_a_context(path: Path):
    """Of the function itself, or given by its caller in the same file."""
    text = path.read_text()
    for function in functions_of(text):
        if not launches_in(function):
            continue
        own = re.search(r"const DeviceContext context\(", function)
        given = (
            "const cuda::Context& context" in function and "const DeviceContext context(" in text
        )
        assert own or given, function


def test_contexts_and_streams_are_made_in_one_place():
    for path in TORCH_ROOM:
        text = path.read_text()
        if path.name != "device_context.cpp":
            assert "getStream(" not in text, path
            assert not re.search(r"cuda::Context (?!&)\w+[{;(= ]", text), path


def test_the_guard_comes_first():
    """Members are made in the order of their declaration: what follows is of the right device."""
    header = (ROOT / "aimle/torch/tensor/device_context.h").read_text()
    members = re.findall(r"^  [\w:]+ (\w+_);", header, re.MULTILINE)
    assert members[0] == "guard_"
    assert {"room_", "context_"} <= set(members)


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.name)
def test_kernels_leave_the_current_device_alone(path: Path):
    text = path.read_text()
    assert "cudaSetDevice" not in text
    for line in text.splitlines():
        if "cudaGetDevice" in line or "cudaDeviceGetAttribute" in line:
            assert "static" not in line
    assert not re.search(
        r"static (?!constexpr|_?_?[a-z]*\s*constexpr).*shared_memory_limit\(", text
    )
