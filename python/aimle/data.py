"""The former name of ``aimle.program.data``."""

import sys

from aimle.program import data
from aimle.program.launch import exit_with

if __name__ == "__main__":
    exit_with(data.main)

sys.modules[__name__] = data
