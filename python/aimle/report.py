"""The former name of ``aimle.program.report``."""

import sys

from aimle.program import report

sys.modules[__name__] = report
