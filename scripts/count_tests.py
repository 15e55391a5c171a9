"""Adds up JUnit files and prints `N passed, M failed, K skipped`; exits with 1 on failure.

A file that is missing (its runner died) or contains no test counts as a failure.
"""

import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path


def count(path: Path) -> tuple[int, int, int]:
    """(passed, failed, skipped) of one file."""
    if not path.exists():
        print(f"{path}: missing, its runner did not finish", file=sys.stderr)
        return 0, 1, 0
    suites = [s for s in ElementTree.parse(path).iter("testsuite") if s.get("tests")]
    total, failed, skipped = (
        sum(int(suite.get(name, 0)) for suite in suites for name in names)
        for names in (("tests",), ("failures", "errors"), ("skipped", "disabled"))
    )
    if total == 0:
        print(f"{path}: no tests", file=sys.stderr)
        return 0, 1, 0
    return total - failed - skipped, failed, skipped


def main(paths: list[str]) -> int:
    counts = [count(Path(path)) for path in paths]
    passed, failed, skipped = (sum(column) for column in zip(*counts, strict=True))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
