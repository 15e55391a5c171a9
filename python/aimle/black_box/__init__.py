"""Solvers from a function that solves one instance: ``aimle.per_instance``.

docs/guide/black_box_solvers.md explains how to use it. `solver.py` is the solver. Its instances are
solved by `worker.py`, in this process or threads (`thread_pool.py`) or by a pool of workers
(`worker_pool.py`) that are processes (`process_worker.py`) or Ray actors (`ray_worker.py`);
`solution_cache.py` answers some of them from earlier solutions.
"""

from aimle.black_box.solver import PerInstance, SolverError, per_instance

__all__ = ["PerInstance", "SolverError", "per_instance"]
