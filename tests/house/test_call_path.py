"""The calls from a layer to its solver are those listed in docs/contributing/architecture.md."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "build/release"

# In the order of the table, as they are spelled in a trace; others may be inlined.
FORWARD = ("perturbed_map_autograd", "forward_op", "aimle::forward")
BACKWARD = ("PerturbedMapFunction", "backward_op", "aimle::backward")

USE = """
import sys, torch, aimle

aimle.load_library(sys.argv[1])
theta = torch.randn(2, 5, requires_grad=True)
z = aimle.AIMLE(aimle.solver("tracer"))(theta)
(z * torch.randn(2, 1, 5)).sum().backward()
"""


def run(*command: object, **options: object) -> str:
    parts = [str(part) for part in command]
    result = subprocess.run(parts, capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, f"{parts}\n{result.stdout}\n{result.stderr}"
    return result.stdout


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """Of every call of the solver: our functions on the stack, the outermost first."""
    folder = tmp_path_factory.mktemp("call_path")
    library, written = folder / "libtracer.so", folder / "calls.txt"
    source = Path(__file__).parent / "call_path/tracer.cpp"
    run("c++", "-std=c++20", "-O1", "-shared", "-fPIC", f"-I{ROOT}", source, "-o", library,
        f"-L{RELEASE}", "-laimle_torch")  # fmt: skip
    environment = os.environ | {"CALL_PATH": str(written), "PYTHONPATH": str(ROOT / "python")}
    run(sys.executable, "-c", USE, library, env=environment)
    result: list[list[str]] = [[]]
    for line in written.read_text().splitlines():
        if line == "end":
            result.append([])
            continue
        path, offset = line.rsplit(" ", 1)
        if Path(path).name in ("libaimle_torch.so", library.name):
            name = run("addr2line", "-f", "-C", "-e", path, f"0x{offset}").splitlines()[0]
            theirs = name.startswith(("c10::", "torch::", "std::vector<at::Tensor"))
            # PyTorch's frames of our function, into which its own may be inlined.
            ours = "PerturbedMapFunction" in name or not theirs
            if ours and "write_down" not in name:
                result[-1].insert(0, name)
    return result[:-1]


def documented(direction: str) -> str:
    """The numbered list below the word Forward or Backward."""
    text = (ROOT / "docs/contributing/architecture.md").read_text()
    section = text.split("## From a layer to its solver")[1].split("##")[0]
    return section.split(f"\n{direction}:\n\n")[1].split("\n\n")[0]


def positions(names: tuple[str, ...], text: list[str] | str) -> list[int]:
    """Where each name occurs first."""
    if isinstance(text, str):
        return [text.index(name) for name in names]
    return [next(i for i, call in enumerate(text) if name in call) for name in names]


def test_the_path_is_short_and_documented(traces: list[list[str]]):
    forward, *backward = traces
    assert len(backward) == 2  # the central difference solves twice
    assert 1 + len(forward) <= 10, forward  # and PerturbedMap.forward of Python
    assert positions(FORWARD, forward) == sorted(positions(FORWARD, forward))
    assert positions(FORWARD, documented("Forward")) == sorted(
        positions(FORWARD, documented("Forward"))
    )
    for calls in backward:
        assert len(calls) <= 10, calls
        # Autograd's own node carries the name of the function; it was left out above.
        assert positions(BACKWARD[1:], calls) == sorted(positions(BACKWARD[1:], calls))
        assert "solve_rows" in calls[-1]
    assert positions(BACKWARD, documented("Backward")) == sorted(
        positions(BACKWARD, documented("Backward"))
    )
