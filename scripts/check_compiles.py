"""Compiles the sources of a target as a build would, without writing objects.

    python scripts/check_compiles.py build/arm64-torch aimle_torch

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


def object_of(words: list[str]) -> str:
    return words[words.index("-o") + 1]


def check_only(words: list[str]) -> list[str]:
    """The command of a build, without its output file and what writes one."""
    output = words.index("-o")
    return [*words[:output], *words[output + 2 :], "-fsyntax-only"]


def compiles(entry: dict[str, str]) -> bool:
    source = Path(entry["file"]).relative_to(ROOT)
    done = subprocess.run(
        check_only(shlex.split(entry["command"])),
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
    parser.add_argument("target", help="of the build, such as aimle_torch")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    entries = json.loads((given.build / "compile_commands.json").read_text())
    # By target: several sources may be compiled as one file, which is in the build folder.
    objects = f"{given.target}.dir/"
    chosen = [each for each in entries if objects in object_of(shlex.split(each["command"]))]
    if not chosen:
        print(f"{given.build} compiles no file of {given.target}", file=sys.stderr)
        return 1
    with ThreadPoolExecutor(given.jobs) as pool:
        good = sum(pool.map(compiles, chosen))
    print(f"{good} of {len(chosen)} files compile")
    return 0 if good == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
