"""The former name of ``aimle.program.report``."""

import sys

from aimle.program import report

if __name__ == "__main__":
    from aimle.program.launch import exit_with
    from aimle.program.report.collection import main

    exit_with(main)

sys.modules[__name__] = report
