"""Finding and loading the compiled library."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import aimle
from aimle import _library


def import_aimle(library: Path) -> subprocess.CompletedProcess:
    """A fresh Python that imports aimle with this library."""
    package = Path(aimle.__file__).parents[1]
    environment = os.environ | {"AIMLE_LIBRARY": str(library), "PYTHONPATH": str(package)}
    return subprocess.run(
        [sys.executable, "-c", "import aimle; print(aimle.__version__)"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The library under another name, with a build record of its own."""
    library = tmp_path / _library.NAME
    library.symlink_to(_library.find())
    record = _library.find().with_name(_library.BUILD_RECORD)
    (tmp_path / _library.BUILD_RECORD).write_text(record.read_text())
    return library


def test_the_environment_variable_names_the_library(copy: Path):
    done = import_aimle(copy)
    assert done.stdout.strip() == aimle.__version__, done.stderr


def test_another_torch_is_named_before_anything_is_loaded(copy: Path):
    record = copy.with_name(_library.BUILD_RECORD)
    record.write_text(json.dumps({"aimle": "0.0.1", "torch": "2.4.1"}))
    done = import_aimle(copy)
    assert done.returncode == 1
    last = done.stderr[done.stderr.index("ImportError") :]
    assert f"built for torch 2.4.1 but torch {torch.__version__} is installed" in last
    assert "Install torch 2.4.*" in last
    assert "undefined symbol" not in last


def test_a_patch_release_of_torch_is_no_obstacle():
    _library.check_torch("2.13.0", "2.13.1+cpu")
    with pytest.raises(ImportError, match=r"torch 2\.13\.0 .* torch 2\.14\.0"):
        _library.check_torch("2.13.0", "2.14.0")


def test_a_missing_library_names_where_it_was_looked_for(tmp_path: Path):
    done = import_aimle(tmp_path / "nothing.so")
    assert done.returncode == 1
    assert str(tmp_path / "nothing.so") in done.stderr
    assert "AIMLE_LIBRARY" in done.stderr


def test_a_missing_build_record_is_named(tmp_path: Path):
    library = tmp_path / _library.NAME
    library.symlink_to(_library.find())
    done = import_aimle(library)
    assert done.returncode == 1
    assert _library.BUILD_RECORD in done.stderr


def test_an_installed_library_comes_before_a_build(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("AIMLE_LIBRARY", raising=False)
    package = Path(aimle.__file__).resolve().parent
    installed, built = _library.candidates()
    assert installed == package / "lib" / _library.NAME
    assert built.parts[-3:] == ("build", "release", _library.NAME)


@pytest.mark.skipif(_library.cuda != "none", reason="aimle was built with GPU kernels")
def test_a_library_without_gpu_kernels_says_what_is_missing():
    """The op that a CUDA tensor would reach, reached with tensors of the CPU."""
    keys = torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA)
    scores = torch.randn(2, 3)
    calls = {
        "topk": lambda: torch.ops.aimle.solve.default.redispatch(keys, scores, "topk:k=1"),
        "gumbel": lambda: torch.ops.aimle.gumbel.default.redispatch(
            keys, torch.tensor([1, 2]), [2], -1, [3]
        ),
    }
    for call in calls.values():
        with pytest.raises(RuntimeError, match=r"without GPU kernels.*nvcc.*AIMLE_CUDA=ON"):
            call()


@pytest.mark.parametrize(("given", "rank"), [("7", 7), ("", 0), ("leader", 0)])
def test_the_rank_of_the_environment(given: str, rank: int):
    """RANK is everybody's name for something: what is no number is not ours."""
    package = str(Path(aimle.__file__).parents[1])
    code = "from aimle.functional import process_rank; print(process_rank())"
    environment = os.environ | {"PYTHONPATH": package, "RANK": given}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout == f"{rank}\n", done.stderr


def test_importing_aimle_does_not_import_the_compiler() -> None:
    """torch._dynamo takes as long to import as the rest of torch."""
    code = "import torch, sys; before = 'torch._dynamo' in sys.modules; import aimle; "
    code += "print(before or 'torch._dynamo' not in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
