"""The layout step of the latent-tree data, against networkx."""

import os
import subprocess
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from repository import ROOT

# networkx takes a force shorter than 0.01 as 0.1 long up to 3.5, as 0.01 long from 3.6 on.
RULE = "tenth" if tuple(map(int, nx.__version__.split(".")[:2])) < (3, 6) else "hundredth"


def layout_steps(rule: str, cases: list[tuple[np.ndarray, np.ndarray]]) -> list[np.ndarray]:
    """One step for each (adjacency, positions), by the C++ of experiments/nri/layout.h."""
    build = Path(os.environ.get("AIMLE_LIBRARY", ROOT / "build/release/lib.so")).parent
    program = build / "tests" / "layout_step"
    if not program.is_file():
        pytest.skip(f"{program} is not built")
    lines = [
        " ".join([rule, str(len(a)), *map(str, a.ravel()), *(repr(float(v)) for v in p.ravel())])
        for a, p in cases
    ]
    out = subprocess.run(
        [program], input="\n".join(lines), text=True, capture_output=True, check=True
    )
    return [
        np.array(line.split(), dtype=float).reshape(-1, 2)
        for line in out.stdout.strip().split("\n")
    ]


def cases(count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Trees and other graphs, positions near and far, some of them on the same spot."""
    out = []
    for seed in range(count):
        random = np.random.default_rng(seed)
        n = int(random.integers(3, 14))
        graph = (
            nx.gnp_random_graph(n, 0.5, seed=seed)
            if seed % 3 == 0
            else nx.random_labeled_tree(n, seed=seed)
        )
        positions = random.normal(size=(n, 2)) * 10.0 ** random.integers(-3, 2)
        if seed % 4 == 0:
            positions[: n // 2] = positions[0]
        if seed % 6 == 0:  # a star whose centre is all but at rest
            angles = np.arange(n - 1) * 2 * np.pi / (n - 1)
            positions[1:] = np.stack([np.cos(angles), np.sin(angles)], 1)
            positions[0] = random.normal(size=2) * 1e-4
            graph = nx.star_graph(n - 1)
        out.append((nx.to_numpy_array(graph, nodelist=range(n), dtype=int), positions))
    return out


def test_a_step_is_that_of_networkx():
    instances = cases(300)
    for seed, ((a, p), ours) in enumerate(
        zip(instances, layout_steps(RULE, instances), strict=True)
    ):
        theirs = nx.spring_layout(
            nx.from_numpy_array(a), pos=dict(enumerate(p)), iterations=1, threshold=1e-10
        )
        theirs = np.array([theirs[v] for v in range(len(a))])
        np.testing.assert_allclose(
            ours, theirs, rtol=0, atol=1e-12, err_msg=f"seed {seed}\n{a}\n{p}"
        )


def test_the_rule_of_the_published_data():
    """The older length rule, which the installed networkx may not have, in NumPy."""
    instances = cases(300)
    short = 0
    for seed, ((a, p), ours) in enumerate(
        zip(instances, layout_steps("tenth", instances), strict=True)
    ):
        n = len(a)
        k = np.sqrt(1 / n)
        t = 0.1 * np.ptp(p, axis=0).max()
        delta = p[:, None] - p[None]
        distance = np.maximum(np.linalg.norm(delta, axis=-1), 0.01)
        force = np.einsum("ijk,ij->ik", delta, k**2 / distance**2 - a * distance / k)
        length = np.linalg.norm(force, axis=-1)
        short += (length < 0.01).sum()
        length[length < 0.01] = 0.1
        moved = p + force * (t / length)[:, None]
        moved -= moved.mean(axis=0)
        moved /= np.abs(moved).max()
        np.testing.assert_allclose(ours, moved, rtol=0, atol=1e-12, err_msg=f"seed {seed}")
    assert short > 5
