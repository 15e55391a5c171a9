"""Gradients through discrete choices.

Solvers     Argmax, TopK, SpanningTree, GridPath; solve, Status, symmetrise
Noise       Gumbel, SumOfGamma, Normal, Logistic; sample_noise, draw_key

Every function here is also an op, ``torch.ops.aimle.<name>``, usable under ``torch.compile``.
"""

from aimle import _library
from aimle.functional import draw_key, sample_noise, solve, symmetrise
from aimle.noise import Gumbel, Logistic, Noise, Normal, SumOfGamma
from aimle.solvers import Argmax, GridPath, Solver, SpanningTree, TopK
from aimle.status import Status

__version__ = _library.version

__all__ = [
    "Argmax",
    "GridPath",
    "Gumbel",
    "Logistic",
    "Noise",
    "Normal",
    "Solver",
    "SpanningTree",
    "Status",
    "SumOfGamma",
    "TopK",
    "draw_key",
    "sample_noise",
    "solve",
    "symmetrise",
]
