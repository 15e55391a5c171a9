"""The wheel works in another environment with the same torch, and refuses a wrong one clearly.

It is built without the program. Tests of a wheel with the program add that of the release build.
"""

import json
import os
import re
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import HeaderParser
from pathlib import Path

import pytest
import torch
from scikit_build_core.settings.skbuild_read_settings import SettingsReader

ROOT = Path(__file__).parents[2]
RELEASE = ROOT / "build/release"

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
    cache = (RELEASE / "CMakeCache.txt").read_text()
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


def files_of(wheel: Path) -> list[str]:
    return zipfile.ZipFile(wheel).namelist()


def metadata_of(wheel: Path) -> Message:
    (name,) = (name for name in files_of(wheel) if name.endswith(".dist-info/METADATA"))
    return HeaderParser().parsestr(zipfile.ZipFile(wheel).read(name).decode())


def test_one_wheel_for_every_python(wheel: Path):
    assert "-py3-none-linux_" in wheel.name
    names = files_of(wheel)
    assert {"aimle/__init__.py", "aimle/__main__.py", "aimle/lib/libaimle_torch.so"} <= set(names)
    assert all(name.startswith(("aimle/", "aimle-")) for name in names), names


def test_it_has_headers_and_a_cmake_package(wheel: Path):
    names = set(files_of(wheel))
    assert {"aimle/include/aimle/map/map.h", "aimle/include/aimle/torch/layer.h"} <= names
    assert "aimle/lib/cmake/aimle/aimleConfig.cmake" in names


def test_the_program_is_left_out(wheel: Path):
    names = files_of(wheel)
    assert not [name for name in names if "bin/" in name or "libaimle_program" in name]


def test_it_requires_the_torch_that_it_was_built_for(wheel: Path):
    required = metadata_of(wheel).get_all("Requires-Dist")
    minor = ".".join(torch.__version__.split(".")[:2])
    assert [line for line in required if re.match(r"torch\b", line)] == [f"torch=={minor}.*"]
    assert {"numpy", "typing_extensions"} <= set(required)


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


@pytest.mark.parametrize("command", [["bin/aimle"], ["bin/python", "-I", "-m", "aimle"]])
def test_without_the_program_it_is_said_how_to_add_it(
    environment: Path, tmp_path: Path, command: list[str]
):
    command = [environment / command[0], *command[1:]]
    result = run(*command, "train", "dvae", cwd=tmp_path, check=False)
    assert result.returncode == 1
    assert "has the library, but not the program `aimle`" in result.stderr
    assert "pip install --no-build-isolation -C cmake.define.AIMLE_CLI=ON .\n" in result.stderr
    result = run(*command, "train", cwd=tmp_path, check=False, env=os.environ | TORCHRUN)
    assert result.returncode == 1
    assert "-C cmake.define.AIMLE_CLI=ON" in result.stderr


#: What torchrun sets, by which the package knows that it was started by it.
TORCHRUN = {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "MASTER_ADDR": "127.0.0.1"}


def test_commands_in_python_need_no_program(environment: Path, tmp_path: Path):
    program = environment / "bin/aimle"
    listed = run(program, "data", "list", cwd=tmp_path, env=os.environ | {"AIMLE_CACHE": "cache"})
    assert "fashion_mnist" in listed.stdout
    result = run(program, "report", tmp_path, cwd=tmp_path, check=False)
    assert result.returncode == 1
    assert f"no runs and no studies in {tmp_path}" in result.stderr
    assert "--candidate" in run(program, "benchmark", "training", "--help", cwd=tmp_path).stdout


@pytest.fixture
def with_program(environment: Path) -> Path:
    """The environment, with the release build's program where a wheel would have it."""
    if not (RELEASE / "aimle").is_file():
        pytest.skip("the program was not built (AIMLE_CLI)")
    (package,) = environment.glob("lib/python*/site-packages/aimle")
    run("cmake", "--install", RELEASE, "--prefix", package, "--component", "program")
    assert (package / "bin/aimle").is_file()
    assert (package / "lib/libaimle_program.so").is_file()
    return environment


def test_the_program_runs_elsewhere(with_program: Path, tmp_path: Path):
    result = run(with_program / "bin/aimle", "--version", cwd=tmp_path)
    assert result.stdout.startswith("aimle ")


def test_torchrun_trains_elsewhere(with_program: Path, tmp_path: Path):
    torchrun = [with_program / "bin/python", "-I", "-m", "torch.distributed.run", "--standalone"]
    torchrun.append("--local-addr=127.0.0.1")
    digits = ["--examples", 20, "--validation", 0, "--test_examples", 5, "--batch", 10, "--rows", 2]
    train = ["train", "dvae", "--epochs", 1, "--threads", 1, *digits, "--out", tmp_path / "run"]
    run(*torchrun, "--nproc-per-node=2", "-m", "aimle", *train, cwd=tmp_path)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["processes"] == 2


class TestWheelWithProgram:
    """`-C cmake.define.AIMLE_CLI=ON`, configured but not built, which would take minutes."""

    def configure(self, build: Path, *options: str) -> subprocess.CompletedProcess:
        """As scikit-build-core configures the wheel with this option."""
        reader = SettingsReader.from_file(
            ROOT / "pyproject.toml", {"cmake.define.AIMLE_CLI": "ON"}, state="wheel"
        )
        defined = [f"-D{name}={value}" for name, value in reader.settings.cmake.define.items()]
        given = ["-DSKBUILD=2", f"-DPython_EXECUTABLE={sys.executable}", "-DAIMLE_CUDA=OFF"]
        command = ["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", *defined, *given, *options]
        return run(*command, check=False)

    def test_installs_the_program(self, tmp_path: Path):
        result = self.configure(tmp_path)
        if "The program `aimle` cannot be built" in result.stderr:
            pytest.skip("CLI11, nlohmann-json or zlib is not installed")
        assert result.returncode == 0, result.stderr
        rules = (tmp_path / "cmake_install.cmake").read_text()
        assert '/aimle/bin" TYPE EXECUTABLE' in rules
        assert "libaimle_program.so" in rules

    def test_names_missing_packages(self, tmp_path: Path):
        result = self.configure(tmp_path, "-DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON")
        assert result.returncode != 0
        assert "apt-get install libcli11-dev nlohmann-json3-dev" in " ".join(result.stderr.split())


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
