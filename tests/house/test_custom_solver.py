"""examples/custom_solver: an external solver works wherever a built-in one does."""

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


def build(folder: Path, prefix_path: str, source: Path = EXAMPLE) -> Path:
    """The build folder of the example, or of another source."""
    run("cmake", "-S", source, "-B", folder, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix_path}")
    run("cmake", "--build", folder)
    return folder


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> str:
    prefix = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", RELEASE, "--prefix", prefix)
    return f"{prefix};{torch.utils.cmake_prefix_path}"


@pytest.fixture(scope="module")
def built(prefix: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("custom_solver"), prefix)


OTHERS = f"""
cmake_minimum_required(VERSION 3.24)
project(others LANGUAGES CXX)
find_package(aimle REQUIRED COMPONENTS core)
# The example over the static core, and another solver of the same name.
add_library(viterbi SHARED {EXAMPLE}/viterbi.cpp)
target_link_libraries(viterbi PRIVATE aimle::core)
add_library(impostor SHARED {EXAMPLE}/viterbi.cpp)
target_link_libraries(impostor PRIVATE aimle::core)
target_compile_definitions(impostor PRIVATE chains=impostors)
"""

ONE_REGISTRY = """
import sys, torch, aimle

viterbi, impostor, nothing = sys.argv[1:]
assert aimle.load_library(viterbi) == ["viterbi"]
chain = aimle.solver("viterbi", length=4, labels=3)
assert chain(torch.randn(2, 3, 3, 3)).sum() == 6
for path, error, said in (
    (impostor, ValueError, "another solver named 'viterbi': choose another kName"),
    (nothing, OSError, "cannot be loaded"),
    (nothing + ".so", FileNotFoundError, "there is no file"),
):
    try:
        aimle.load_library(path)
    except error as message:
        assert str(message).startswith("[aimle"), message
        assert said in str(message) and path in str(message), message
    else:
        raise AssertionError(path)
assert aimle.solver_names().count("viterbi") == 1
"""


def test_one_registry_whatever_a_library_links(prefix: str, tmp_path: Path):
    (tmp_path / "CMakeLists.txt").write_text(OTHERS)
    folder = build(tmp_path / "build", prefix, source=tmp_path)
    (tmp_path / "nothing").write_text("no library")
    libraries = [folder / "libviterbi.so", folder / "libimpostor.so", tmp_path / "nothing"]
    python("-c", ONE_REGISTRY, *libraries)
    if (RELEASE / "aimle").exists():
        command = [RELEASE / "aimle", "--version", "--library", libraries[0], "--library"]
        for path, said in ((libraries[1], "another solver named"), (libraries[2], "cannot be")):
            result = subprocess.run([*command, path], capture_output=True, text=True, check=False)
            assert result.returncode == 1
            assert result.stderr.startswith("aimle: --library: ")
            assert said in result.stderr


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
