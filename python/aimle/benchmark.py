"""The former name of ``aimle.program.benchmark``."""

import sys

from aimle.program import benchmark

if __name__ == "__main__":
    from aimle.program.benchmark.__main__ import main
    from aimle.program.launch import exit_with

    exit_with(main)

sys.modules[__name__] = benchmark
