"""What a wheel says about the torch that it was built for.

A provider of dynamic metadata for scikit-build-core (pyproject.toml). A C++ library built for one
minor release of torch does not load into another, so the wheel requires that release, as in
`torch==2.13.*`, and pip does not replace it. Where wheels for several torches are published side by
side, AIMLE_WHEEL_LABEL distinguishes them: with `torch2.13.cpu` the version is 0.2.0+torch2.13.cpu.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

LABEL = "AIMLE_WHEEL_LABEL"
OLDEST = (2, 11)
MISSING = """\
aimle: there is no torch to build for. Run

    pip install torch

first ({oldest} or newer), then this command again, in the same environment."""
TOO_OLD = """\
aimle: torch {found} is installed, but aimle needs {oldest} or newer. Run

    pip install 'torch>={oldest}'

first, then this command again."""

_PRINT_VERSION = "import importlib.metadata as m; print(m.version('torch'))"


def spell(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def installed_torch(python: str = sys.executable) -> str | None:
    """The version of the torch that the build takes; None if there is none.

    As in cmake/FindTorchFromPython.cmake: pip's isolated build hides the installed torch by the
    environment, which `-I` ignores."""
    for options in ([], ["-I"]):
        command = [python, *options, "-c", _PRINT_VERSION]
        found = subprocess.run(command, capture_output=True, text=True, check=False, cwd=os.sep)
        if found.returncode == 0:
            return found.stdout.strip()
    return None


def minor_release(version: str) -> tuple[int, ...]:
    """(2, 13) of 2.13.0+cpu."""
    return tuple(int(part) for part in version.split(".")[:2])


def requirement(version: str | None) -> str:
    """`torch==2.13.*` for torch 2.13.0; ends the build with the remedy without a usable torch."""
    if version is None:
        sys.exit(MISSING.format(oldest=spell(OLDEST)))
    release = minor_release(version)
    if release < OLDEST:
        sys.exit(TOO_OLD.format(found=version, oldest=spell(OLDEST)))
    return f"torch=={spell(release)}.*"


class Provider:
    """`project.dependencies`: torch, and the setting `others`; `project.version`, with the label.

    The source distribution can be built for any torch, and says so."""

    def __init__(self) -> None:
        self._is_source = False

    def build_state(self, build_state: str) -> None:
        self._is_source = build_state == "sdist"

    def dynamic_metadata(
        self, settings: Mapping[str, Any], project: Mapping[str, Any]
    ) -> dict[str, Any]:
        version, others = project["version"], settings["others"]
        if self._is_source:
            return {"version": version, "dependencies": [f"torch>={spell(OLDEST)}", *others]}
        label = os.environ.get(LABEL)
        return {
            "version": f"{version}+{label}" if label else version,
            "dependencies": [requirement(installed_torch()), *others],
        }

    def dynamic_wheel(self, _settings: Mapping[str, Any]) -> dict[str, bool]:
        return {"dependencies": True}
