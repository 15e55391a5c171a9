"""Solvers for the tests of the GPU, each with the shape of an instance: all kinds of kernels."""

import aimle

SOLVERS = {
    "argmax": (aimle.Argmax(), (20,)),
    "topk": (aimle.TopK(5), (20,)),
    "long topk": (aimle.TopK(50), (2000,)),
    "tree": (aimle.SpanningTree(6), (15,)),
    "grid": (aimle.GridPath(), (5, 6)),
    "assignment": (aimle.Assignment(), (5, 6)),
    "tall assignment": (aimle.Assignment(), (50, 40)),
    "large assignment": (aimle.Assignment(), (170, 200)),
}
