"""Checks a Python given with PYTHON=...: torch and the other packages of requirements.txt.

Nothing is installed. Only torch needs a minimum version; a tool (cmake, ninja) may also be a
command on the PATH.
"""

import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

OLDEST_PYTHON = (3, 10)
OLDEST_TORCH = (2, 11)
LINT_ONLY = {"clang-format", "clang-tidy", "ruff"}  # checked by scripts/lint.sh


def installed_version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def required_names(requirements: Path) -> list[str]:
    lines = requirements.read_text().splitlines()
    names = (re.match(r"[A-Za-z0-9_-]+", line) for line in lines)
    return list(dict.fromkeys(name.group() for name in names if name))


def problems() -> list[str]:
    if sys.version_info < OLDEST_PYTHON:
        return [f"it is Python {sys.version.split()[0]}; aimle needs 3.10 or newer"]

    found = []
    torch = installed_version("torch")
    if torch is None:
        found.append("it has no torch; aimle needs 2.11 or newer")
    elif tuple(int(part) for part in torch.split(".")[:2]) < OLDEST_TORCH:
        found.append(f"its torch is {torch}; aimle needs 2.11 or newer")

    requirements = Path(__file__).parent.parent / "requirements.txt"
    missing = [
        name
        for name in required_names(requirements)
        if name != "torch"
        and name not in LINT_ONLY
        and installed_version(name) is None
        and shutil.which(name) is None
    ]
    if missing:
        found.append(
            "it lacks packages for the build, the demo and the tests. Install them with\n"
            f"    {sys.executable} -m pip install {' '.join(missing)}"
        )
    return found


if __name__ == "__main__":
    found = problems()
    for problem in found:
        print(f"PYTHON={sys.executable}: {problem}", file=sys.stderr)
    sys.exit(bool(found))
