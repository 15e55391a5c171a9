"""Gradients through discrete choices.

Layers      AIMLE, IMLE, DBB, STE, Identity; AdaptiveTarget, FixedTarget
Estimators  estimator(name, solver, ...), estimators(); Thresholds, SFE, CovarianceAIMLE, DPO,
            ExactMarginals, ReinMax, GumbelRao; GumbelSoftmax, SoftSub, SST, L2X, anneal;
            perturbed_fenchel_young_loss, spo_plus_loss
Solvers     Arborescence, Argmax, Assignment, Bernoulli, Chain, DagPath, GraphPath, GridPath,
            Knapsack, LatticeMoves, LatticePath, SpanningTree, TopK; solve, Status; by name, and
            custom ones in C++: solver, solver_names, load_library
Black box   per_instance: a Python function of one instance as a solver, on a pool of workers;
            SolverError; from_pyepo, from_linear_sum_assignment, from_milp, from_cp_sat,
            from_networkx
Helpers     chain_scores, chain_labels, chain_mask; symmetrise, sinkhorn
Exact       exact.log_partition, .marginals, .covariance, .entropy, .sample, .structures, .expected,
            .exact_gradient
Noise       Gumbel, SumOfGamma, Normal, Logistic; sample_noise, draw_key
Diagnostics diagnose: compare estimators on a batch; log_stats: log a layer's statistics;
            reduce_state: update the adaptive state from all processes, before a checkpoint
Compat      aimle.compat: the interface of torch-imle and torch-adaptive-imle

Everything is built on the ops ``torch.ops.aimle.*`` and works under ``torch.compile``.
"""

import importlib
from typing import TYPE_CHECKING

from aimle import _library, exact
from aimle._library import cmake_prefix_path
from aimle.chains import chain_labels, chain_mask, chain_scores
from aimle.diagnosis import Diagnosis, diagnose
from aimle.estimate import (
    DPO,
    L2X,
    SFE,
    SST,
    CovarianceAIMLE,
    ExactMarginals,
    GumbelRao,
    GumbelSoftmax,
    ReinMax,
    SoftSub,
    Thresholds,
    anneal,
    estimator,
    estimators,
    perturbed_fenchel_young_loss,
    spo_plus_loss,
)
from aimle.functional import draw_key, sample_noise, solve, symmetrise
from aimle.graph_paths import DagPath, GraphPath
from aimle.layers import AIMLE, DBB, IMLE, STE, Identity
from aimle.log import log_stats
from aimle.noise import Gumbel, Logistic, Noise, Normal, SumOfGamma
from aimle.perturbed_map import PerturbedMap
from aimle.sinkhorn import sinkhorn
from aimle.solvers import Solver, load_library, solver, solver_names
from aimle.state.sharing import reduce_state
from aimle.status import Status
from aimle.structures import (
    Arborescence,
    Argmax,
    Assignment,
    Bernoulli,
    Chain,
    GridPath,
    Knapsack,
    LatticeMoves,
    LatticePath,
    SpanningTree,
    TopK,
)
from aimle.targets import AdaptiveTarget, FixedTarget

__version__ = _library.version

__all__ = [
    "AIMLE",
    "DBB",
    "DPO",
    "IMLE",
    "L2X",
    "SFE",
    "SST",
    "STE",
    "AdaptiveTarget",
    "Arborescence",
    "Argmax",
    "Assignment",
    "Bernoulli",
    "Chain",
    "CovarianceAIMLE",
    "DagPath",
    "Diagnosis",
    "ExactMarginals",
    "FixedTarget",
    "GraphPath",
    "GridPath",
    "Gumbel",
    "GumbelRao",
    "GumbelSoftmax",
    "Identity",
    "Knapsack",
    "LatticeMoves",
    "LatticePath",
    "Logistic",
    "Noise",
    "Normal",
    "PerInstance",
    "PerturbedMap",
    "ReinMax",
    "SoftSub",
    "Solver",
    "SolverError",
    "SpanningTree",
    "Status",
    "SumOfGamma",
    "Thresholds",
    "TopK",
    "anneal",
    "chain_labels",
    "chain_mask",
    "chain_scores",
    "cmake_prefix_path",
    "compat",
    "diagnose",
    "draw_key",
    "estimator",
    "estimators",
    "exact",
    "from_cp_sat",
    "from_linear_sum_assignment",
    "from_milp",
    "from_networkx",
    "from_pyepo",
    "load_library",
    "log_stats",
    "per_instance",
    "perturbed_fenchel_young_loss",
    "reduce_state",
    "sample_noise",
    "sinkhorn",
    "solve",
    "solver",
    "solver_names",
    "spo_plus_loss",
    "symmetrise",
]


# Imported on first use: pools of workers need torch._dynamo, which takes as long to import as the
# rest of torch.
_ON_FIRST_USE = {
    "compat": "aimle.compat",
    "PerInstance": "aimle.black_box",
    "SolverError": "aimle.black_box",
    "per_instance": "aimle.black_box",
    "from_cp_sat": "aimle.adapters",
    "from_linear_sum_assignment": "aimle.adapters",
    "from_milp": "aimle.adapters",
    "from_networkx": "aimle.adapters",
    "from_pyepo": "aimle.adapters",
}

if TYPE_CHECKING:  # a __getattr__ would make a type checker accept any name
    from aimle import compat
    from aimle.adapters import (
        from_cp_sat,
        from_linear_sum_assignment,
        from_milp,
        from_networkx,
        from_pyepo,
    )
    from aimle.black_box import PerInstance, SolverError, per_instance
else:

    def __getattr__(name: str):
        if name not in _ON_FIRST_USE:
            raise AttributeError(f"module 'aimle' has no attribute {name!r}")
        module = importlib.import_module(_ON_FIRST_USE[name])
        return module if name == "compat" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
