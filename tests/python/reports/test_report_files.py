"""Files of reports are either complete or absent, even if the disk fails."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from written_runs import write_run

import aimle
from aimle._files import write_atomically
from aimle.diagnosis import Diagnosis
from aimle.program import data
from aimle.program.benchmark import __main__ as benchmark
from aimle.program.benchmark import choices, program_tasks
from aimle.program.benchmark.results import Results


def test_a_full_disk_leaves_the_old_file_and_no_temporary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "report.html"
    page.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomically(page, b"new")
    assert caught.value.filename == str(page)
    assert page.read_text() == "old"
    assert list(tmp_path.iterdir()) == [page]


def test_the_folder_is_flushed_after_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page, flushed = tmp_path / "report.html", []

    def flush(file: int) -> None:
        flushed.append((os.readlink(f"/proc/self/fd/{file}"), page.exists()))

    monkeypatch.setattr(os, "fsync", flush)
    write_atomically(page, b"new")
    assert flushed == [(f"{page}.tmp{os.getpid()}", False), (str(tmp_path), True)]


def test_temporaries_of_dead_processes_are_removed(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    (tmp_path / f"report.html.tmp{ended.pid}").write_text("torn")
    living = tmp_path / f"report.html.tmp{os.getppid()}"
    living.write_text("being written")
    other = tmp_path / "report.html.tmpl"
    other.write_text("mine")
    write_atomically(page, b"new")
    assert sorted(tmp_path.iterdir()) == sorted([page, living, other])


def test_threads_may_write_the_same_file(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda i: write_atomically(page, b"%d" % i), range(200)))
    assert int(page.read_text()) in range(200)
    assert list(tmp_path.iterdir()) == [page]


def limit_files() -> None:
    """Writes past this size fail, as on a full disk (Python ignores SIGXFSZ)."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


def test_the_command_says_so_in_one_line(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib.font_manager")  # its cache is written here, without the limit
    write_run(tmp_path / "run", "aimle", 0, [3.0, 2.0])
    pages = tmp_path / "pages"
    pages.mkdir()
    out = pages / "page.html"
    command = [
        sys.executable,
        "-m",
        "aimle.program.report.collection",
        tmp_path / "run",
        "--out",
        out,
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=limit_files,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 3, done.stderr
    assert done.stderr == (
        f"no report: cannot write {out}: File too large; free some space or choose another place\n"
    )
    assert list(pages.iterdir()) == []


def test_saved_figures_are_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    from aimle.program.report import Page, figures

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    figure, axes = figures.subplots()
    axes.plot([1, 2], [3, 4])
    with pytest.raises(OSError, match="No space left on device"):
        Page("title").figure(figure, tmp_path / "loss")
    assert list(tmp_path.iterdir()) == []


def write_choices(folder: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choices, "PAGE", folder / "choices.md")
        patch.setattr(choices, "ROWS", folder / "training.csv")
        patch.setattr(choices, "split", lambda _: ("", "", ""))
        patch.setattr(Path, "read_text", lambda *_, **__: "")
        choices.main()


def write_gradients(folder: Path) -> None:
    file = str(folder / "gradients.npy")
    chosen = aimle.compat.imle(lambda x: (x > 0).to(x), _gradient_save_path=file)
    chosen(torch.randn(2, 3, requires_grad=True)).sum().backward()


def write_failed_instance(folder: Path) -> None:
    aimle.per_instance(lambda _: 1 / 0, save_to=folder)(torch.zeros(1, 3))


WRITERS: dict[str, Callable[[Path], object]] = {
    "rows": lambda folder: Results(folder / "training.csv").create(),
    "page": lambda folder: benchmark.main(["advice", "--table", "--output", str(folder)]),
    "stamp": lambda folder: program_tasks._begin(folder, ["arguments"]),
    "choices": write_choices,
    "diagnosis": lambda folder: Diagnosis("topk", [3], "exact", 0.0, 1).save(folder),
    "gradients": write_gradients,
    "instance": write_failed_instance,
}


@pytest.mark.parametrize("name", WRITERS)
def test_no_file_is_written_in_place(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with contextlib.suppress(KeyboardInterrupt, aimle.SolverError):
        WRITERS[name](tmp_path)
    assert [file for file in tmp_path.rglob("*") if file.is_file()] == []


def test_downloads_can_be_read_by_others(tmp_path: Path) -> None:
    (tmp_path / "served").mkdir()
    content = b"content"
    (tmp_path / "served" / "a").write_bytes(content)
    file = data.PublishedFile("a", len(content), hashlib.sha256(content).hexdigest())
    source = (tmp_path / "served").as_uri()
    data.fetch(data.DataSet("test", "a file", (source,), (file,)), tmp_path / "cache")
    written = tmp_path / "cache" / "a"
    assert written.stat().st_mode == (tmp_path / "served" / "a").stat().st_mode
