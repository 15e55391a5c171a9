"""The layers that benchmarks/bench_layer.py times agree with the plain ones."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture(scope="module")
def bench_layer():
    sys.path.insert(0, str(BENCHMARKS))
    try:
        yield importlib.import_module("bench_layer")
    finally:
        sys.path.remove(str(BENCHMARKS))


def test_every_timed_layer_has_the_gradient_of_the_plain_one(bench_layer):
    pytest.importorskip("scipy")
    for case in bench_layer.cases():
        bench_layer.check(case)
