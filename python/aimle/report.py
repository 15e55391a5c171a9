"""The former name of ``aimle.program.report``."""

from aimle.program.launch import stand_for

stand_for(__name__, "aimle.program.report", runs="aimle.program.report.collection")
