"""Files of reports are either complete or absent, even if the disk fails."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from written_runs import write_run

from aimle.program.report.files import write_atomically


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
