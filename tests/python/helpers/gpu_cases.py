"""Solvers for the tests of the GPU, each with the shape of an instance: all kinds of kernels."""

import aimle

SOLVERS = {
    "argmax": (aimle.Argmax(), (20,)),
    "topk": (aimle.TopK(5), (20,)),
    "long topk": (aimle.TopK(50), (2000,)),
    "tree": (aimle.SpanningTree(6), (15,)),
    "grid": (aimle.GridPath(), (5, 6)),
    "arborescence": (aimle.Arborescence(), (6, 6)),
    "arborescence of one root": (aimle.Arborescence(single_root=True), (40, 40)),
    "large arborescence": (aimle.Arborescence(), (180, 180)),
    "assignment": (aimle.Assignment(), (5, 6)),
    "tall assignment": (aimle.Assignment(), (50, 40)),
    "large assignment": (aimle.Assignment(), (170, 200)),
}
