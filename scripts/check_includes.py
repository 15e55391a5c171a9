"""Checks includes: every folder of aimle/ may include only the folders listed for it here, and the
shared folders of experiments/ may not include a single experiment.

docs/contributing/architecture.md explains why. Prints `file:line: message` for each violation.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

MAY_INCLUDE = {
    "base": {"base"},
    "noise": {"base", "noise"},
    "map": {"base", "map"},
    "estimate": {"base", "noise", "map", "estimate"},
    "exact": {"base", "noise", "map", "exact"},
    "registry": {"base", "map", "exact", "registry"},
    "cuda": {"base", "noise", "map", "estimate", "exact", "registry", "cuda"},
    "torch": {"base", "noise", "map", "estimate", "exact", "registry", "cuda", "torch"},
}
MAY_INCLUDE_TORCH = {"torch"}
# The shared folders do not depend on any experiment.
EXPERIMENTS_MAY_INCLUDE = {
    "process": {"process"},
    "data": {"process", "data", "engine"},
    "engine": {"process", "data", "engine"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*(?P<open>[<"])(?P<path>[^>"]+)[>"]')
TORCH_HEADER = re.compile(r"(torch|ATen|c10|caffe2|pybind11)/|Python\.h$")
SOURCES = {".h", ".cpp", ".cu", ".cuh"}


def offence(room: str, opening: str, path: str) -> str | None:
    """The violation of one include in a file of `room`, if any."""
    if path.startswith("aimle/"):
        other = path.split("/")[1]
        if other not in MAY_INCLUDE[room]:
            return f"{room} may not include {other} ({path})"
        return None if opening == '"' else f'write "{path}" with quotes'
    if TORCH_HEADER.match(path) and room not in MAY_INCLUDE_TORCH:
        return f"{room} may not include Torch or Python ({path})"
    if opening == '"':
        return f'"{path}": includes within the project start with aimle/'
    return None


def sources(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in SOURCES)


def offences(root: Path) -> Iterator[str]:
    for file in sources(root / "aimle"):
        room = file.relative_to(root).parts[1]
        name = file.relative_to(root)
        if room not in MAY_INCLUDE:
            yield f"{name}: the folder '{room}' is not listed in {Path(__file__).name}"
            continue
        for number, line in enumerate(file.read_text().splitlines(), start=1):
            include = INCLUDE.match(line)
            if include and (message := offence(room, include["open"], include["path"])):
                yield f"{name}:{number}: {message}"


def offences_of_experiments(root: Path) -> Iterator[str]:
    for folder, allowed in EXPERIMENTS_MAY_INCLUDE.items():
        for file in sources(root / "experiments" / folder):
            for number, line in enumerate(file.read_text().splitlines(), start=1):
                path = include["path"] if (include := INCLUDE.match(line)) else ""
                if path.startswith("experiments/") and path.split("/")[1] not in allowed:
                    name = file.relative_to(root)
                    yield f"{name}:{number}: experiments/{folder} may not include {path}"


if __name__ == "__main__":
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent.parent
    found = [*offences(root), *offences_of_experiments(root)]
    print("\n".join(found) or "includes: no violations")
    sys.exit(bool(found))
