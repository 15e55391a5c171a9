"""Runs the example of README.md with the installed aimle: its output must be the one shown there.

    python -I scripts/try_wheel.py

The Python that runs it must find aimle among its installed packages, not in this source tree.
"""

import contextlib
import io
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXAMPLE = re.compile(r"```python\n(.*?)```\n+```text\n(.*?)```", re.DOTALL)


def main() -> int:
    import torch

    import aimle

    place = Path(aimle.__file__).resolve()
    if place.is_relative_to(ROOT / "python"):
        print(f"aimle is that of the source tree: {place}", file=sys.stderr)
        return 1
    code, expected = EXAMPLE.search((ROOT / "README.md").read_text()).groups()
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "README.md", "exec"), {})
    if output.getvalue() != expected:
        print(f"expected {expected!r} but got {output.getvalue()!r}", file=sys.stderr)
        return 1
    python = sys.version.split()[0]
    print(
        f"aimle {aimle.__version__}, torch {torch.__version__}, Python {python}: the example works"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
