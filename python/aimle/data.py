"""The former name of ``aimle.program.data``."""

from aimle.program.launch import stand_for

stand_for(__name__, "aimle.program.data")
