"""Solvers for GPU tests, with the shapes of their instances, covering every kind of kernel."""

import oracles

import aimle

SOLVERS = {
    "argmax": (aimle.Argmax(), (20,)),
    "topk": (aimle.TopK(5), (20,)),
    "long topk": (aimle.TopK(50), (2000,)),
    "tree": (aimle.SpanningTree(6), (15,)),
    "knapsack": (aimle.Knapsack([3, 1, 4, 1, 5, 9, 2, 6, 5, 3], 17), (10,)),
    "large knapsack": (aimle.Knapsack(range(100, 300), 9000), (200,)),
    "grid": (aimle.GridPath(), (5, 6)),
    "bernoulli": (aimle.Bernoulli(), (30,)),
    "long bernoulli": (aimle.Bernoulli(), (5000,)),
    "graph": (aimle.GraphPath(oracles.grid_graph(4, 5, oracles.KING), 2, 17), (110,)),
    "large graph": (aimle.GraphPath(oracles.grid_graph(30, 30, oracles.KING), 0, 899), (6844,)),
    "dag": (aimle.DagPath(oracles.edges(9), 0, 8), (36,)),
    "chain": (aimle.Chain(), (6, 4, 4)),
    "short chain": (aimle.Chain(), (2, 3, 3)),
    "chain of many labels": (aimle.Chain(), (3, 70, 70)),
    "lattice": (aimle.LatticePath(), (6, 5)),
    "lattice moves": (aimle.LatticeMoves(), (4, 5, 3)),
    "arborescence": (aimle.Arborescence(), (6, 6)),
    "arborescence of one root": (aimle.Arborescence(single_root=True), (40, 40)),
    "large arborescence": (aimle.Arborescence(), (180, 180)),
    "assignment": (aimle.Assignment(), (5, 6)),
    "tall assignment": (aimle.Assignment(), (50, 40)),
    "large assignment": (aimle.Assignment(), (170, 200)),
}
