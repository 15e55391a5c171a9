"""The former name of ``aimle.program.demo``."""

import sys

from aimle.program import demo

if __name__ == "__main__":
    from aimle.program.demo.__main__ import main
    from aimle.program.launch import exit_with

    exit_with(main)

sys.modules[__name__] = demo
