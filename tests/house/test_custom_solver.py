"""examples/custom_solver: a solver outside the tree works wherever one of ours does."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "build/release"
EXAMPLE = ROOT / "examples/custom_solver"

USE = """
import itertools, pickle, sys
import torch, aimle

library = sys.argv[1]
assert aimle.load_library(library) == ["viterbi"]
assert aimle.load_library(library) == []  # a second time changes nothing
assert aimle.solver_names()[-1] == "viterbi"
chain = aimle.solver("viterbi", length=4, labels=3)
assert (chain.sense, chain.instance_dims, chain.fixed_size) == ("max", 3, True)
assert chain.text == "viterbi:length=4,labels=3"
assert pickle.loads(pickle.dumps(chain)) == chain

# The best of all sequences, on any number of threads.
torch.manual_seed(0)
theta = torch.randn(500, 3, 3, 3)
paths = list(itertools.product(range(3), repeat=4))
totals = torch.stack([sum(theta[:, t, p[t], p[t + 1]] for t in range(3)) for p in paths])
z = chain(theta)
assert torch.allclose((z * theta).sum((1, 2, 3)), totals.max(0).values, atol=1e-5)
torch.set_num_threads(1)
assert torch.equal(chain(theta), z)
torch.set_num_threads(2)

# Bad rows and bad settings.
theta[3, 0, 0, 0] = torch.nan
status = aimle.solve(chain, theta, return_status=True)[1]
assert status[3] == aimle.Status.NAN and status.sum() == status[3]
theta[3] = 0
for settings, said in (({"length": 1, "labels": 3}, "length >= 2"), ({"length": 4}, "labels")):
    try:
        aimle.solver("viterbi", **settings)
    except (ValueError, TypeError) as error:
        assert said in str(error), error
    else:
        raise AssertionError(settings)
try:
    chain(torch.zeros(2, 2))
except ValueError as error:
    assert "viterbi" in str(error), error
else:
    raise AssertionError("a wrong shape was taken")

# A layer with a gradient, the same bits in a compiled graph, and as a callable.
key = torch.tensor([1, 2])
weight = torch.randn(500, 1, 3, 3, 3)

def gradient(layer):
    leaf = theta.clone().requires_grad_()
    (layer(leaf, key=key) * weight).sum().backward()
    return leaf.grad

expected = gradient(aimle.AIMLE(chain))
assert expected.abs().sum() > 0
compiled = torch.compile(aimle.AIMLE(chain), fullgraph=True, backend="aot_eager")
assert torch.equal(gradient(compiled), expected)
plain = lambda scores: chain(scores)
plain.instance_dims, plain.fixed_size = 3, True
assert torch.equal(gradient(aimle.AIMLE(plain)), expected)

# Estimators that need more than the solver say so.
for name in ("sfe", "thresholds"):
    try:
        aimle.estimator(name, chain)
    except TypeError as error:
        assert "viterbi" in str(error), error
    else:
        raise AssertionError(name)
found = aimle.diagnose(
    aimle.AIMLE(chain), theta[:2], lambda z: (z * weight[:2]).sum((-1, -2, -3)), truth_samples=400
)
print(found)
"""


def run(*command: object, **options: object) -> str:
    parts = [str(part) for part in command]
    result = subprocess.run(parts, capture_output=True, text=True, check=False, **options)
    assert result.returncode == 0, f"{parts}\n{result.stdout}\n{result.stderr}"
    return result.stdout


def build(folder: Path, prefix_path: str, *targets: str) -> Path:
    """The example's build folder."""
    run("cmake", "-S", EXAMPLE, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix_path}")
    run("cmake", "--build", folder, *(["--target", *targets] if targets else []))
    return folder


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", RELEASE, "--prefix", prefix)
    folder = tmp_path_factory.mktemp("custom_solver")
    return build(folder, f"{prefix};{torch.utils.cmake_prefix_path}")


def python(*arguments: object) -> str:
    environment = {"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin", "HOME": "/tmp"}
    return run(sys.executable, *arguments, env=environment)


def test_it_works_in_python(built: Path):
    assert "aimle" in python("-c", USE, built / "libviterbi.so")


def test_it_trains(built: Path):
    last = python(EXAMPLE / "train.py", built / "libviterbi.so").splitlines()[-1]
    right, alone = (int(part.split("%")[0]) for part in last.split("; "))
    assert right > alone


def test_it_works_in_the_layer_of_cpp(built: Path):
    assert run(built / "layer") == "24 transitions, gradient there\n"


@pytest.mark.skipif(not (RELEASE / "aimle").exists(), reason="the program was not built")
def test_the_program_diagnoses_it(built: Path, tmp_path: Path):
    command = [RELEASE / "aimle", "diagnose", "--library", built / "libviterbi.so"]
    settings = ["--structure", "viterbi", "--length", "4", "--labels", "3", "--samples", "1,5"]
    run(*command, *settings, "--repeats", "5", "--warmup", "50", "--long_run", "500",
        "--out", tmp_path, "--quiet")  # fmt: skip
    found = json.loads((tmp_path / "diagnosis.json").read_text())
    assert found["solver"] == "viterbi:length=4,labels=3"
    assert {row["estimator"] for row in found["results"]} >= {"aimle", "imle", "ste"}
