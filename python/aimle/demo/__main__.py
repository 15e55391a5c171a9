"""`python -m aimle.demo`: what the library does, in about a minute.

1. Solves a batch of each structure and prints the time next to what one would use instead.
2. Learns the costs of maps from their shortest paths with three gradient estimators.

Writes two pictures.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path

from aimle.demo import structures, training


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        prog="python -m aimle.demo",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="folder for pictures")
    parser.add_argument("--steps", type=int, default=600, help="training steps of each method")
    options = parser.parse_args(arguments)
    if options.steps < 1:
        parser.error(f"argument --steps: expected at least 1 but got {options.steps}")
    try:
        options.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"argument --out: cannot make {options.out}: {error.strerror}")

    batch = structures.structures()
    structures.print_table(batch)
    print("\nLearning the costs of 12 x 12 maps from their shortest paths\n", flush=True)
    try:
        curves, test = training.run(options.steps)
    except KeyboardInterrupt:
        print("\nstopped; nothing was written", file=sys.stderr)
        return 130
    training.print_table(curves)
    if importlib.util.find_spec("matplotlib") is None:
        print("matplotlib is not installed: no pictures were drawn", file=sys.stderr)
        return 0
    structures.draw(batch, options.out / "structures.png")
    training.draw(curves, test, options.out / "learning.png")
    print(f"\nPictures: {options.out / 'structures.png'}, {options.out / 'learning.png'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
