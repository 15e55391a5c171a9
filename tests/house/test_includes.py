"""The core includes no Torch header, and every folder only the folders that it may include."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def check(root: Path) -> subprocess.CompletedProcess:
    command = [sys.executable, str(ROOT / "scripts/check_includes.py"), str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_tree_obeys():
    result = check(ROOT)
    assert result.returncode == 0, result.stdout


@pytest.mark.parametrize(
    ("file", "include", "message"),
    [
        ("base/a.h", "<ATen/core/Tensor.h>", "base may not include Torch or Python"),
        ("map/a.cpp", "<torch/library.h>", "map may not include Torch or Python"),
        ("noise/a.cpp", "<c10/util/Half.h>", "noise may not include Torch or Python"),
        ("noise/a.h", '"aimle/map/topk.h"', "noise may not include map"),
        ("map/a.h", '"aimle/noise/noise.h"', "map may not include noise"),
        ("base/a.h", '"aimle/torch/ops.h"', "base may not include torch"),
        ("map/a.h", '"topk.h"', "start with aimle/"),
        ("attic/a.h", "<vector>", "the folder 'attic' is not listed"),
    ],
)
def test_an_offence_is_named(tmp_path: Path, file: str, include: str, message: str):
    offender = tmp_path / "aimle" / file
    offender.parent.mkdir(parents=True)
    offender.write_text(f"#pragma once\n#include {include}\n")
    result = check(tmp_path)
    assert result.returncode == 1
    assert message in result.stdout
    assert f"aimle/{file}" in result.stdout


@pytest.mark.parametrize("path", ["experiments/dvae/dvae.h", "experiments/registry.h"])
def test_the_engine_knows_no_experiment(tmp_path: Path, path: str):
    file = tmp_path / "experiments/engine/a.cpp"
    file.parent.mkdir(parents=True)
    file.write_text(f'#include "experiments/engine/run_folder.h"\n#include "{path}"\n')
    result = check(tmp_path)
    assert result.returncode == 1
    assert f"experiments/engine/a.cpp:2: experiments/engine may not include {path}" in result.stdout


def test_the_torch_room_may_include_everything(tmp_path: Path):
    file = tmp_path / "aimle/torch/a.cpp"
    file.parent.mkdir(parents=True)
    file.write_text('#include <torch/library.h>\n#include "aimle/map/map.h"\n#include <vector>\n')
    assert check(tmp_path).returncode == 0
