"""Solvers from other libraries as solvers for layers; each is an ``aimle.per_instance``.

All accept its settings (workers, timeout, on_error, cache and so on). The default noise
suits solutions that vary in size, and layers find out whether they do, unless ``fixed_size`` is
given: True means that all have the same number of ones.
Models of CP-SAT, NetworkX and PyEPO solve one instance at a time in each process, so that
``pool="threads"`` does not speed them up.
Masked scores, which are infinitely bad, are passed on as finite scores that outweigh all others.
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
