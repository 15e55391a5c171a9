"""Solvers of other libraries as solvers for layers; each is an ``aimle.per_instance``.

All take its settings (workers, timeout, on_error, cache and the rest). Solutions are taken to vary
in size, unless ``fixed_size=True`` says that all have the same number of ones. Masked scores, which
are infinitely bad, reach them as finite ones that are worse than all others together.
"""

from aimle.adapters._cp_sat import from_cp_sat
from aimle.adapters._networkx import from_networkx
from aimle.adapters._pyepo import from_pyepo
from aimle.adapters._scipy import from_linear_sum_assignment, from_milp

__all__ = [
    "from_cp_sat",
    "from_linear_sum_assignment",
    "from_milp",
    "from_networkx",
    "from_pyepo",
]
