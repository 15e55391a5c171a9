"""Wrong calls of solvers and noise: the exception and the text of its message."""

from collections.abc import Callable

import pytest
import torch
from bad_rows import bools, scores, with_value

import aimle

ops = torch.ops.aimle
inf, nan = float("inf"), float("nan")
KEY = torch.tensor([1, 2])
BAD_INPUT: dict[str, tuple[Callable[[], object], type[Exception], tuple[str, ...]]] = {
    # Settings.
    "k negative": (lambda: aimle.TopK(-1), ValueError, ("TopK", "k >= 0", "k=-1")),
    "k not an int": (lambda: aimle.TopK(2.5), TypeError, ("TopK", "k", "int", "float")),
    "k a bool": (lambda: aimle.TopK(True), TypeError, ("TopK", "k", "int", "bool")),
    "no vertices": (lambda: aimle.SpanningTree(0), ValueError, ("SpanningTree", "n >= 1", "n=0")),
    "unknown moves": (
        lambda: aimle.LatticePath(moves="up"),
        ValueError,
        ("LatticePath", "moves", "'all' or 'straight' or 'diagonal'", "'up'"),
    ),
    "neighbourhood": (
        lambda: aimle.GridPath(neighbourhood=6),
        ValueError,
        ("GridPath", "neighbourhood", "8 or 4", "6"),
    ),
    "negative": (
        lambda: aimle.GridPath(negative="ignore"),
        ValueError,
        ("GridPath", "negative", "'clip' or 'error'", "'ignore'"),
    ),
    "source": (
        lambda: aimle.GridPath(source=(1, 2, 3)),
        TypeError,
        ("GridPath", "source", "(row, column)", "(1, 2, 3)"),
    ),
    "target": (
        lambda: aimle.GridPath(target=5),
        TypeError,
        ("GridPath", "target", "(row, column)", "5"),
    ),
    "sum of gamma k": (
        lambda: aimle.SumOfGamma(0),
        ValueError,
        ("SumOfGamma", "1 <= k <= 1000000", "k=0"),
    ),
    "sum of gamma iterations": (
        lambda: aimle.SumOfGamma(3, nb_iterations=0),
        ValueError,
        ("SumOfGamma", "1 <= nb_iterations <= 1000", "nb_iterations=0"),
    ),
    "sum of gamma iterations not an int": (
        lambda: aimle.SumOfGamma(3, nb_iterations=1.0),
        TypeError,
        ("SumOfGamma", "nb_iterations", "int", "float"),
    ),
    # Scores.
    "not a solver": (lambda: aimle.solve("topk", scores(3)), TypeError, ("solve", "solver", "str")),
    "not a tensor": (
        lambda: aimle.solve(aimle.Argmax(), [1.0, 2.0]),
        TypeError,
        ("Argmax", "scores", "tensor", "list"),
    ),
    "integer scores": (
        lambda: aimle.Argmax()(scores(3).long()),
        TypeError,
        ("argmax", "scores", "float32, float64, bfloat16 or float16", "int64"),
    ),
    "complex scores": (
        lambda: aimle.TopK(1)(scores(3).to(torch.complex64)),
        TypeError,
        ("topk", "scores", "float32", "complex64"),
    ),
    "bool scores": (
        lambda: aimle.GridPath()(scores(3, 3) > 0),
        TypeError,
        ("grid_path", "scores", "float32", "bool"),
    ),
    "scalar scores": (
        lambda: aimle.Argmax()(torch.tensor(1.0)),
        ValueError,
        ("argmax", "scores", "at least 1 dimension", "[]"),
    ),
    "moves of one lattice score": (
        lambda: aimle.LatticeMoves()(scores(2, 4, 5)),
        ValueError,
        ("lattice_moves", "scores", "last dimension of 5", "lattice_path"),
    ),
    "lattice without cells": (
        lambda: aimle.LatticePath()(scores(2, 3, 0)),
        ValueError,
        ("lattice_path", "scores", "1 x 1", "3 x 0"),
    ),
    "grid of one dimension": (
        lambda: aimle.GridPath()(scores(9)),
        ValueError,
        ("grid_path", "scores", "at least 2 dimensions", "[9]"),
    ),
    "nothing to choose from": (
        lambda: aimle.Argmax()(scores(2, 0)),
        ValueError,
        ("argmax", "n >= 1", "n=0"),
    ),
    "grid without cells": (
        lambda: aimle.GridPath()(scores(2, 0, 3)),
        ValueError,
        ("grid_path", "scores", "1 x 1", "0 x 3"),
    ),
    "tree of another size": (
        lambda: aimle.SpanningTree(5)(scores(2, 11)),
        ValueError,
        ("spanning_tree", "scores", "10 (undirected) or 20 (directed)", "n=5", "11"),
    ),
    "source outside": (
        lambda: aimle.GridPath(source=(0, 4))(scores(3, 4)),
        ValueError,
        ("grid_path", "source", "3 x 4", "(0, 4)"),
    ),
    "target outside": (
        lambda: aimle.GridPath(target=(-4, 0))(scores(3, 4)),
        ValueError,
        ("grid_path", "target", "3 x 4", "(-4, 0)"),
    ),
    "symmetrise another size": (
        lambda: aimle.symmetrise(scores(2, 10), 5),
        ValueError,
        ("symmetrise", "scores", "20", "vertices=5", "[2, 10]"),
    ),
    "symmetrise integers": (
        lambda: aimle.symmetrise(scores(2, 20).int(), 5),
        TypeError,
        ("symmetrise", "scores", "float32", "int32"),
    ),
    # k.
    "k larger than n": (
        lambda: aimle.TopK(6)(scores(2, 5)),
        ValueError,
        ("topk", "0 <= k <= n", "k=6", "n=5"),
    ),
    "k of a row too large": (
        lambda: aimle.TopK(2)(scores(2, 2, 5), k=torch.tensor([[1, 2], [9, 3]])),
        ValueError,
        ("topk", "row (1, 0)", "0 <= k <= 5", "k=9"),
    ),
    "k of a row negative": (
        lambda: aimle.TopK(2)(scores(3, 5), k=torch.tensor([1, 2, -1])),
        ValueError,
        ("topk", "row 2", "0 <= k <= 5", "k=-1"),
    ),
    "k of another dtype": (
        lambda: aimle.TopK(2)(scores(3, 5), k=torch.tensor([1.0, 2.0, 3.0])),
        TypeError,
        ("topk", "k per row", "int64", "float32"),
    ),
    "k of another shape": (
        lambda: aimle.TopK(2)(scores(3, 5), k=torch.tensor([1, 2])),
        ValueError,
        ("topk", "k per row", "[3]", "[2]"),
    ),
    "k neither int nor tensor": (
        lambda: aimle.TopK(2)(scores(3, 5), k="3"),
        TypeError,
        ("TopK", "k", "int64 tensor", "'3'"),
    ),
    "k a bool in the call": (
        lambda: aimle.solve(aimle.TopK(2), scores(3), k=True),
        TypeError,
        ("TopK", "k", "int >= 0", "int64 tensor", "True", "bool"),
    ),
    "k where there is none": (
        lambda: aimle.Argmax()(scores(3, 5), k=2),
        TypeError,
        ("Argmax", "takes no k"),
    ),
    # Masks.
    "mask of another dtype": (
        lambda: aimle.TopK(2)(scores(3, 5), mask=torch.ones(3, 5)),
        TypeError,
        ("topk", "mask", "bool", "float32"),
    ),
    "mask not a tensor": (
        lambda: aimle.TopK(2)(scores(3), mask=[True, True, False]),
        TypeError,
        ("TopK", "mask", "tensor", "list"),
    ),
    "mask of another shape": (
        lambda: aimle.TopK(2)(scores(3, 5), mask=bools("1111")),
        ValueError,
        ("topk", "mask", "[3, 5]", "[1, 4]"),
    ),
    "mask of too many dimensions": (
        lambda: aimle.Argmax()(scores(5), mask=bools("11111", "11111")),
        ValueError,
        ("argmax", "mask", "[5]", "[2, 5]"),
    ),
    "mask on another device": (
        lambda: aimle.Argmax()(scores(5), mask=torch.ones(5, dtype=torch.bool, device="meta")),
        ValueError,
        ("argmax", "mask", "cpu", "meta"),
    ),
    "mask with too few entries": (
        lambda: aimle.TopK(2)(scores(3, 3), mask=bools("111", "110", "010")),
        ValueError,
        ("topk", "row 2", "at least k=2", "mask", "leave 1 of 3"),
    ),
    "mask without entries": (
        lambda: aimle.Argmax()(scores(3), mask=bools("000")[0]),
        ValueError,
        ("argmax", "at least k=1", "leave 0 of 3"),
    ),
    "too few finite scores": (
        lambda: aimle.TopK(2)(torch.tensor([-inf, -inf, 1.0])),
        ValueError,
        ("topk", "at least k=2", "-inf", "leave 1 of 3"),
    ),
    "mask parts a tree": (
        lambda: aimle.SpanningTree(3)(scores(2, 3), mask=bools("111", "100")),
        ValueError,
        ("spanning_tree", "row 1", "connected", "mask"),
    ),
    "mask leaves no lattice": (
        lambda: aimle.LatticePath()(scores(2, 2), mask=bools("00", "00")),
        ValueError,
        ("lattice_path", "connected", "mask"),
    ),
    "lattice wider than high": (
        lambda: aimle.LatticePath(moves="diagonal")(scores(2, 2, 3)),
        ValueError,
        ("lattice_path", "row 0", "no connected solution"),
    ),
    "mask parts a grid": (
        lambda: aimle.GridPath()(scores(3, 3), mask=bools("111", "000", "111")),
        ValueError,
        ("grid_path", "connected", "mask"),
    ),
    "walls part a grid": (
        lambda: aimle.GridPath(4)(torch.tensor([[1.0, inf], [inf, 1.0]])),
        ValueError,
        ("grid_path", "connected", "infinite costs"),
    ),
    "mask leaves no assignment": (
        lambda: aimle.Assignment()(scores(2, 2, 2), mask=bools("11", "00")),
        ValueError,
        ("assignment", "row 0", "too few entries", "leave 2 of 4"),
    ),
    "assignment of a vector": (
        lambda: aimle.Assignment()(scores(9)),
        ValueError,
        ("assignment", "scores", "at least 2 dimensions", "[9]"),
    ),
    "assignment without columns": (
        lambda: aimle.Assignment()(scores(2, 3, 0)),
        ValueError,
        ("assignment", "1 to 16384", "[3, 0]"),
    ),
    "mask leaves no arborescence": (
        lambda: aimle.Arborescence()(scores(2, 2, 2), mask=bools("01", "10")),
        ValueError,
        ("arborescence", "row 0", "connected", "mask"),
    ),
    "mask leaves no single root": (
        lambda: aimle.Arborescence(single_root=True)(scores(2, 2, 2), mask=bools("10", "01")),
        ValueError,
        ("arborescence", "row 0", "connected", "mask"),
    ),
    "arborescence of a vector": (
        lambda: aimle.Arborescence()(scores(9)),
        ValueError,
        ("arborescence", "scores", "at least 2 dimensions", "[9]"),
    ),
    "arborescence that is not square": (
        lambda: aimle.Arborescence()(scores(3, 4)),
        ValueError,
        ("arborescence", "shape [n, n]", "[3, 4]"),
    ),
    "arborescence of another size": (
        lambda: aimle.Arborescence(4)(scores(3, 3)),
        ValueError,
        ("arborescence", "shape [n, n] for n=4", "[3, 3]"),
    ),
    "single_root is no bool": (
        lambda: aimle.Arborescence(single_root="yes"),
        TypeError,
        ("Arborescence", "single_root", "True or False", "str"),
    ),
    # Values.
    "negative cost": (
        lambda: aimle.GridPath(negative="error")(with_value(-0.5, 1, 2, 0, shape=(2, 3, 3))),
        ValueError,
        ("grid_path", "row 1", "costs >= 0", 'negative="error"', "scores[1, 2, 0]=-0.5"),
    ),
    "NaN under check": (
        lambda: aimle.solve(aimle.TopK(1), with_value(nan, 1, 2, shape=(2, 3)), check=True),
        ValueError,
        ("topk", "row 1", "scores[1, 2]=nan"),
    ),
    "NaN in a row alone": (
        lambda: aimle.solve(aimle.Argmax(), torch.tensor([1.0, nan]), check=True),
        ValueError,
        ("argmax", "scores[1]=nan"),
    ),
    "opposite infinities": (
        lambda: aimle.solve(aimle.SpanningTree(2), torch.tensor([inf, -inf]), check=True),
        ValueError,
        ("spanning_tree", "inf - inf"),
    ),
    "level of check": (
        lambda: ops.solve(scores(3), "argmax", None, None, 3),
        ValueError,
        ("check", "0", "2", "3"),
    ),
    # Noise.
    "unknown noise": (
        lambda: aimle.sample_noise("cauchy", (2, 3), KEY),
        ValueError,
        ("noise", "'gumbel'", "None", "SumOfGamma", "'cauchy'"),
    ),
    "noise without its settings": (
        lambda: aimle.sample_noise("sum_of_gamma", (2, 3), KEY),
        ValueError,
        ("noise", "aimle.SumOfGamma(k=10)", "'sum_of_gamma'"),
    ),
    "key of another dtype": (
        lambda: aimle.sample_noise("gumbel", (2, 3), KEY.int()),
        TypeError,
        ("gumbel", "key", "int64", "int32"),
    ),
    "key of another shape": (
        lambda: aimle.sample_noise("normal", (2, 3), torch.tensor([1, 2, 3, 4])),
        ValueError,
        ("normal", "key", "[2]", "[4]"),
    ),
    "no key": (
        lambda: aimle.sample_noise("normal", (2, 3), 7),
        TypeError,
        ("sample_noise", "key", "tensor", "int"),
    ),
    "shape a number": (
        lambda: aimle.sample_noise("gumbel", 5, KEY),
        TypeError,
        ("sample_noise", "shape", "sequence of sizes", "5"),
    ),
    "key of a number": (
        lambda: aimle.draw_key(7),
        TypeError,
        ("draw_key", "like", "tensor", "int"),
    ),
    "no samples": (
        lambda: aimle.sample_noise("gumbel", (2, 3), KEY, nb_samples=0),
        ValueError,
        ("nb_samples >= 1", "0"),
    ),
    "samples of the op": (
        lambda: ops.gumbel(KEY, [2], -2, [3]),
        ValueError,
        ("gumbel", "samples >= 1", "-2"),
    ),
    "negative size": (
        lambda: aimle.sample_noise("logistic", (2, -3), KEY),
        ValueError,
        ("logistic", "instance", ">= 0", "-3"),
    ),
    "more instances than counters": (
        lambda: aimle.sample_noise("logistic", (2**33, 0), KEY),
        ValueError,
        ("logistic", "batch", "4294967296", "8589934592"),
    ),
    "instance dimensions": (
        lambda: aimle.sample_noise("gumbel", (2, 3), KEY, instance_dims=3),
        ValueError,
        ("instance_dims", "<= 2", "3"),
    ),
    "negative temperature": (
        lambda: aimle.sample_noise("gumbel", (2, 3), KEY, temperature=-1.0),
        ValueError,
        ("temperature", ">= 0", "-1.0"),
    ),
    "temperature NaN": (
        lambda: aimle.sample_noise("gumbel", (2, 3), KEY, temperature=nan),
        ValueError,
        ("temperature", ">= 0", "nan"),
    ),
    "table on another device": (
        lambda: ops.sum_of_gamma(KEY, [2], 1, [3], aimle.SumOfGamma(3).table("meta")),
        ValueError,
        ("sum_of_gamma", "table", "cpu", "meta"),
    ),
    "table of another size": (
        lambda: ops.sum_of_gamma(KEY, [2], 1, [3], torch.zeros(7)),
        ValueError,
        ("sum_of_gamma", "table", "sum_of_gamma_table", "[7]"),
    ),
    "table of another dtype": (
        lambda: ops.sum_of_gamma(KEY, [2], 1, [3], aimle.SumOfGamma(3).table().double()),
        TypeError,
        ("sum_of_gamma", "table", "float32", "float64"),
    ),
    "settings of the table": (
        lambda: ops.sum_of_gamma_table(10, 0),
        ValueError,
        ("sum_of_gamma", "1 <= iterations <= 100", "iterations=0"),
    ),
    "rank": (
        lambda: aimle.draw_key(scores(2), rank=-1),
        ValueError,
        ("draw_key", "rank >= 0", "-1"),
    ),
}


@pytest.mark.parametrize("name", BAD_INPUT)
def test_bad_input_is_named(name: str):
    call, exception, words = BAD_INPUT[name]
    with pytest.raises(exception) as raised:
        call()
    assert type(raised.value) is exception
    message = str(raised.value)
    assert [word for word in words if word not in message] == [], message
