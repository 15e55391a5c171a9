"""`python -m aimle.program.demo`: a tour of the library in about a minute.

1. Solves a batch of each structure and compares the time with a common alternative.
2. Learns the costs of maps from their shortest paths with three gradient estimators.
3. Compares every estimator with the true gradient, with the program `aimle` (a reduced study).

Writes pictures and one page, report.html, into a new or empty folder.
"""

import argparse
import importlib.util
import itertools
import subprocess
import sys
from pathlib import Path

from aimle.program.demo import gradients, structures, training
from aimle.program.launch import exit_with


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        prog="python -m aimle.program.demo",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--out", type=Path, help="folder for everything (default: out/demo, or out/demo-2, ...)"
    )
    parser.add_argument("--force", action="store_true", help="use the folder even if not empty")
    parser.add_argument("--steps", type=int, default=600, help="training steps of each method")
    parser.add_argument("--seeds", type=int, default=8, help="instances in the gradient study")
    options = parser.parse_args(arguments)
    for name in ("steps", "seeds"):
        if getattr(options, name) < 1:
            parser.error(f"argument --{name}: expected at least 1 but got {getattr(options, name)}")
    out = options.out or _unused_folder(Path("out/demo"))
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"argument --out: cannot create {out}: {error.strerror}")
    if any(out.iterdir()) and not options.force:
        parser.error(f"argument --out: {out} is not empty: choose another folder, or use --force")

    batch = structures.structures()
    structures.print_table(batch)
    print("\nLearning the costs of 12 x 12 maps from their shortest paths\n", flush=True)
    curves, test = training.run(options.steps)
    training.print_table(curves)
    if importlib.util.find_spec("matplotlib") is None:
        print("matplotlib is not installed: no pictures were drawn", file=sys.stderr)
        return 0
    structures.draw(batch, out / "structures.png")
    training.draw(curves, test, out / "learning.png")
    print("\nHow close the gradients are to the true one\n", flush=True)
    try:
        studied = gradients.study(out / "gradients", options.seeds, options.force)
    except subprocess.CalledProcessError as error:
        return error.returncode if error.returncode > 0 else 128 - error.returncode
    if not studied:
        print("left out, because the program `aimle` was not built: `make build` builds it")
    print(f"\n{gradients.page(out, studied)}")
    return 0


def _unused_folder(wanted: Path) -> Path:
    """The folder itself if new or empty, else the first of wanted-2, wanted-3, ... that is."""
    for number in itertools.count(1):
        folder = wanted if number == 1 else wanted.with_name(f"{wanted.name}-{number}")
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return folder
    raise AssertionError("unreachable")


if __name__ == "__main__":
    exit_with(main)
