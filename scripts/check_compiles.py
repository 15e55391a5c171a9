"""Compiles the sources of a folder as a build would, without writing objects.

    python scripts/check_compiles.py build/arm64-torch aimle/torch

For a processor whose libraries are not here: the build folder is configured but cannot be linked.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def check_only(command: str) -> list[str]:
    """The command of a build, without its output file and what writes one."""
    words = shlex.split(command)
    output = words.index("-o")
    return [*words[:output], *words[output + 2 :], "-fsyntax-only"]


def compiles(entry: dict[str, str]) -> bool:
    source = Path(entry["file"]).relative_to(ROOT)
    done = subprocess.run(
        check_only(entry["command"]),
        cwd=entry["directory"],
        env=os.environ | {"CCACHE_DISABLE": "1"},  # there is no object to store
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stderr, end="", file=sys.stderr)
    print(f"{source}: {'compiles' if done.returncode == 0 else 'DOES NOT COMPILE'}", flush=True)
    return done.returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("build", type=Path, help="a configured build folder")
    parser.add_argument("folder", help="of the sources, such as aimle/torch")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    entries = json.loads((given.build / "compile_commands.json").read_text())
    folder = ROOT / given.folder
    chosen = [entry for entry in entries if Path(entry["file"]).is_relative_to(folder)]
    if not chosen:
        print(f"{given.build} compiles no file of {given.folder}", file=sys.stderr)
        return 1
    with ThreadPoolExecutor(given.jobs) as pool:
        good = sum(pool.map(compiles, chosen))
    print(f"{good} of {len(chosen)} files compile")
    return 0 if good == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
