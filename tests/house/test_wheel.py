"""The wheel works in another environment with the same torch, and refuses a wrong one clearly."""

import json
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]

SOLVE = """
import aimle, torch
z = aimle.solve(aimle.TopK(2), torch.tensor([[0.1, 0.9, 0.3, 0.8, 0.2]]))
print(aimle.__file__)
print(z.int().tolist())
"""


def run(*command: object, check: bool = True, **options: object) -> subprocess.CompletedProcess:
    command = [str(part) for part in command]
    result = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert not check or result.returncode == 0, f"{command}\n{result.stdout}\n{result.stderr}"
    return result


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    # By the same name of the compiler, ccache gives back what the release build has compiled.
    cache = (ROOT / "build/release/CMakeCache.txt").read_text()
    compiler = re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)[1]
    build = ["wheel", ROOT, "--no-build-isolation", "--no-deps", "--wheel-dir", folder]
    run(*pip, *build, env=os.environ | {"CXX": compiler})
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture
def environment(wheel: Path, tmp_path: Path) -> Path:
    """A fresh environment that holds the wheel and sees this one's torch, and nothing of ours."""
    home = tmp_path / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", home)
    python = home / "bin/python"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python]
    run(*pip, "install", "--no-deps", wheel)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "torch.pth").write_text(f"{Path(torch.__file__).parents[1]}\n")
    return home


def test_one_wheel_for_every_python(wheel: Path):
    assert "-py3-none-linux_" in wheel.name
    names = zipfile.ZipFile(wheel).namelist()
    libraries = {"aimle/lib/libaimle_torch.so", "aimle/lib/libaimle_program.so"}
    assert {"aimle/__init__.py", "aimle/__main__.py", *libraries} <= set(names)
    assert all(name.startswith(("aimle/", "aimle-")) for name in names), names


def test_the_library_remembers_no_path_of_the_build(wheel: Path, tmp_path: Path):
    library = zipfile.ZipFile(wheel).extract("aimle/lib/libaimle_torch.so", tmp_path)
    dynamic = run("readelf", "-d", library).stdout
    assert "libtorch_cpu.so" in dynamic
    assert "RPATH" not in dynamic
    assert "RUNPATH" not in dynamic


def test_it_solves_elsewhere(environment: Path, tmp_path: Path):
    output = run(environment / "bin/python", "-I", "-c", SOLVE, cwd=tmp_path).stdout
    file, z = output.splitlines()
    assert Path(file).is_relative_to(environment)
    assert z == "[[0, 1, 0, 1, 0]]"


def test_a_wrong_torch_is_named_at_import(environment: Path, tmp_path: Path):
    (build,) = environment.glob("lib/python*/site-packages/aimle/lib/_build.json")
    build.write_text(json.dumps(json.loads(build.read_text()) | {"torch": "1.13.0"}))
    python = environment / "bin/python"
    result = run(python, "-I", "-c", "import aimle", cwd=tmp_path, check=False)
    assert result.returncode != 0
    assert "1.13.0" in result.stderr
    assert torch.__version__ in result.stderr
    assert "undefined symbol" not in result.stderr


def test_the_program_runs_elsewhere(environment: Path, tmp_path: Path):
    result = run(environment / "bin/aimle", "--version", cwd=tmp_path)
    assert result.stdout.startswith("aimle ")


def test_torchrun_trains_elsewhere(environment: Path, tmp_path: Path):
    torchrun = [environment / "bin/python", "-I", "-m", "torch.distributed.run", "--standalone"]
    torchrun.append("--local-addr=127.0.0.1")
    digits = ["--examples", 20, "--validation", 0, "--test_examples", 5, "--batch", 10, "--rows", 2]
    train = ["train", "dvae", "--epochs", 1, "--threads", 1, *digits, "--out", tmp_path / "run"]
    run(*torchrun, "--nproc-per-node=2", "-m", "aimle", *train, cwd=tmp_path)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["processes"] == 2


USE_VITERBI = """
import sys, torch, aimle
assert aimle.load_library(sys.argv[1]) == ["viterbi"]
theta = torch.randn(8, 3, 3, 3, requires_grad=True)
z = aimle.AIMLE(aimle.solver("viterbi", length=4, labels=3))(theta)
(z * torch.randn_like(z)).sum().backward()
print(int(z.sum()), bool(theta.grad.abs().sum() > 0))
"""


def test_a_solver_is_built_against_it(environment: Path, tmp_path: Path):
    python = environment / "bin/python"
    prefix = run(python, "-I", "-c", "import aimle; print(aimle.cmake_prefix_path())").stdout
    source, build = ROOT / "examples/custom_solver", tmp_path / "build"
    run("cmake", "-S", source, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix.strip()}")
    run("cmake", "--build", build, "--target", "viterbi")
    library = build / "libviterbi.so"
    assert run(python, "-I", "-c", USE_VITERBI, library, cwd=tmp_path).stdout == "24 True\n"
