"""`aimle.log_stats`: the statistics of layers in several kinds of logs."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from repository import ROOT

import aimle as library


def test_stats_go_to_any_callable():
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.choose = library.AIMLE(library.TopK(2))

    model = Model()
    written: list[tuple[str, float, int]] = []
    first = library.log_stats(model, lambda *entry: written.append(entry), 0)
    assert set(first) == {"aimle/choose/alpha", "aimle/choose/gbar", "aimle/choose/updates"}
    z = model.choose(torch.randn(4, 6, requires_grad=True))
    z.square().sum().backward()
    library.log_stats(model.choose, lambda *entry: written.append(entry), 7, prefix="layer")
    assert ("layer/updates", 1.0, 7) in written
    assert any(name == "layer/lambda_mean" for name, _, _ in written)


def trained_layer() -> torch.nn.Module:
    layer = library.AIMLE(library.TopK(2))
    layer(torch.randn(4, 6, requires_grad=True)).square().sum().backward()
    return layer


def test_stats_go_to_a_summary_writer():
    class Writer:
        def __init__(self) -> None:
            self.written: dict[str, tuple[float, int]] = {}

        def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> None:
            self.written[tag] = (scalar_value, global_step)

    writer = Writer()
    values = library.log_stats(trained_layer(), writer, 3)
    assert writer.written == {name: (value, 3) for name, value in values.items()}
    assert writer.written["aimle/updates"] == (1.0, 3)


def test_stats_are_appended_to_a_file_of_json_lines(tmp_path: Path):
    layer = trained_layer()
    for place in (tmp_path / "stats.jsonl", str(tmp_path / "stats.jsonl")):
        values = library.log_stats(layer, place, 7)
    lines = [json.loads(line) for line in (tmp_path / "stats.jsonl").read_text().splitlines()]
    assert lines == [{"step": 7, **values}] * 2


def limit_files() -> None:
    """Writes past this size fail, as on a full disk (Python ignores SIGXFSZ)."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def steps_in(file: Path) -> list[int]:
    return [json.loads(line)["step"] for line in file.read_text().splitlines()]


def test_a_full_disk_leaves_complete_lines(tmp_path: Path):
    file, layer = tmp_path / "stats.jsonl", "aimle.AIMLE(aimle.TopK(2))"
    loop = f"import aimle\nfor step in range(1000): aimle.log_stats({layer}, {str(file)!r}, step)"
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    result = subprocess.run(
        [sys.executable, "-c", loop],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit_files,
    )
    assert "File too large" in result.stderr
    written = steps_in(file)
    assert written == list(range(len(written)))
    assert 3500 < file.stat().st_size < 4096
    library.log_stats(trained_layer(), file, 1000)
    assert steps_in(file) == [*written, 1000]


@pytest.mark.parametrize(
    ("last", "kept"),
    [
        ('{"step": 9, "aimle/alp', ""),
        ('{"st', ""),
        ('{"step": 9}', '{"step": 9}\n'),
        ("another text", "another text\n"),
    ],
)
def test_a_line_without_an_end_is_removed_if_it_is_half_of_one(
    last: str, kept: str, tmp_path: Path
):
    file, before = tmp_path / "stats.jsonl", '{"step": 8}\n'
    for start in ("", before):
        file.write_text(start + last)
        library.log_stats(trained_layer(), file, 10)
        assert file.read_text().startswith(start + kept + '{"step": 10, ')
        assert file.read_text().endswith("}\n")


def test_stats_go_to_a_pipe():
    reads, writes = os.pipe()
    library.log_stats(trained_layer(), f"/dev/fd/{writes}", 7)
    assert json.loads(os.read(reads, 4096))["step"] == 7
    os.close(reads)
    os.close(writes)


def test_stats_are_returned_for_loggers_that_take_a_dict():
    values = library.log_stats(trained_layer())
    assert values["aimle/updates"] == 1.0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, "file"), "module to be a torch.nn.Module but got int"),
        ((trained_layer(), 3), "write to be a function.*but got int"),
        ((torch.nn.Identity(), 3), "write to be a function.*but got int"),
        ((trained_layer(), None, "7"), "step to be an int but got str"),
        ((trained_layer(), None, 7, 3), "prefix to be a str but got int"),
    ],
)
def test_wrong_arguments_are_refused(arguments: tuple, message: str):
    with pytest.raises(TypeError, match=rf"\[aimle.log_stats\] expected {message}"):
        library.log_stats(*arguments)


def test_the_step_may_be_a_number_of_numpy(tmp_path: Path):
    library.log_stats(trained_layer(), tmp_path / "stats.jsonl", np.int64(7))
    assert json.loads((tmp_path / "stats.jsonl").read_text())["step"] == 7


def run_example(*arguments: object) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, str(ROOT / "examples/log_stats.py"), *map(str, arguments)]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_example_writes_json_lines(tmp_path: Path):
    run_example(tmp_path / "stats.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "stats.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [0, 100, 200, 300]
    assert all("aimle/alpha" in line for line in lines)


def test_the_example_logs_every_number():
    lines = [line.split() for line in run_example().splitlines()]
    names = {name for _, name, _ in lines}
    assert {"loss", "aimle/alpha", "aimle/lambda_mean", "aimle/count"} <= names
    losses = [float(value) for _, name, value in lines if name == "loss"]
    assert losses[-1] < losses[0]
