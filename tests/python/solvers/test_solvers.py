"""Solvers on tensors: one conformance test for all, then each against its oracle."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import oracles
import pytest
import torch
from torch import Tensor

import aimle


@dataclass(frozen=True)
class Case:
    """A solver, the shape of one instance, and an oracle for one instance without ties."""

    solver: aimle.Solver
    instance: tuple[int, ...]
    oracle: Callable[[np.ndarray], np.ndarray]

    def scores(self, *batch: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.rand(*batch, *self.instance, generator=generator, dtype=torch.float64)
        return (drawn + 0.05).to(dtype)

    def expected(self, scores: Tensor) -> Tensor:
        rows = scores.double().cpu().numpy().reshape(-1, *self.instance)
        z = np.stack([self.oracle(row) for row in rows]) if len(rows) else rows
        return torch.from_numpy(z).reshape(scores.shape).to(scores.dtype)


GRAPH = oracles.grid_graph(4, 5, oracles.KING)
DAG = [(v, u) for u, v in oracles.edges(6)][::-1]  # from 5 down to 0

CASES = {
    "argmax": Case(aimle.Argmax(), (9,), oracles.argmax),
    "topk": Case(aimle.TopK(4), (11,), lambda x: oracles.topk(x, 4)),
    "tree": Case(aimle.SpanningTree(6), (15,), lambda x: oracles.spanning_tree(x, 6)),
    "directed_tree": Case(
        aimle.SpanningTree(6), (30,), lambda x: oracles.directed_spanning_tree(x, 6)
    ),
    "knapsack": Case(
        aimle.Knapsack([3, 1, 4, 1, 5, 9, 2, 6, 5], 14),
        (9,),
        lambda x: oracles.knapsack(x, [3, 1, 4, 1, 5, 9, 2, 6, 5], 14),
    ),
    "grid8": Case(aimle.GridPath(), (5, 7), oracles.grid_path),
    "grid4": Case(
        aimle.GridPath(4, source=(-1, 0), target=(0, -2)),
        (6, 4),
        lambda x: oracles.grid_path(x, 4, (-1, 0), (0, -2)),
    ),
    "graph": Case(
        aimle.GraphPath(GRAPH, 2, 17), (110,), lambda x: oracles.graph_path(x, GRAPH, 2, 17)
    ),
    "dag": Case(aimle.DagPath(DAG, 5, 0), (15,), lambda x: oracles.dag_path(x, DAG, 5, 0)),
    "chain": Case(aimle.Chain(), (4, 3, 3), oracles.chain),
    "bernoulli": Case(aimle.Bernoulli(), (9,), lambda x: (x > 0).astype(x.dtype)),
    "lattice": Case(aimle.LatticePath(), (5, 4), oracles.lattice),
    "diagonal_lattice": Case(
        aimle.LatticePath("diagonal"), (6, 3), lambda x: oracles.lattice(x, "diagonal")
    ),
    "lattice_moves": Case(
        aimle.LatticeMoves("straight"), (3, 4, 3), lambda x: oracles.lattice(x, "straight")
    ),
    "arborescence": Case(aimle.Arborescence(), (6, 6), oracles.arborescence),
    "arborescence_of_one_root": Case(
        aimle.Arborescence(5, single_root=True),
        (5, 5),
        lambda x: oracles.arborescence(x, single_root=True),
    ),
    "assignment": Case(aimle.Assignment(), (5, 5), oracles.assignment),
    "wide_assignment": Case(aimle.Assignment(), (3, 7), oracles.assignment),
    "tall_assignment": Case(aimle.Assignment(), (18, 16), oracles.assignment),
}


@pytest.fixture(params=CASES.values(), ids=CASES.keys())
def case(request: pytest.FixtureRequest) -> Case:
    return request.param


# ---- Conformance ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_agrees_with_the_oracle(case: Case, device: torch.device, dtype: torch.dtype):
    for seed in range(3):
        scores = case.scores(100, seed=seed, dtype=dtype).to(device)
        z = case.solver(scores)
        assert z.dtype == dtype
        assert z.device == scores.device
        torch.testing.assert_close(z.cpu(), case.expected(scores), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_narrow_types_are_solved_in_float32(case: Case, device: torch.device, dtype: torch.dtype):
    scores = case.scores(50, dtype=dtype).to(device)
    z = case.solver(scores)
    assert z.dtype == dtype
    assert torch.equal(z, case.solver(scores.float()).to(dtype))


@pytest.mark.parametrize("batch", [(), (1,), (5,), (2, 3), (2, 1, 3, 2), (0,), (3, 0, 2)])
def test_any_batch_dimensions_equal_a_loop(case: Case, device: torch.device, batch: tuple):
    scores = case.scores(*batch).to(device)
    z, status = aimle.solve(case.solver, scores, return_status=True)
    assert z.shape == scores.shape
    assert status.shape == batch
    assert status.dtype == torch.uint8
    assert not status.any()
    flat = scores.reshape(-1, *case.instance)
    loop = [case.solver(row) for row in flat]
    assert torch.equal(z.reshape(flat.shape), torch.stack(loop) if loop else flat)


def test_non_contiguous_scores(case: Case, device: torch.device):
    scores = case.scores(4, 6).to(device)
    expected = case.solver(scores)
    assert torch.equal(case.solver(scores.transpose(0, 1)), expected.transpose(0, 1))
    assert torch.equal(case.solver(scores[::2, 1::3]), expected[::2, 1::3])
    strided = torch.stack([scores, -scores], dim=-1)[..., 0]
    assert not strided.is_contiguous()
    assert torch.equal(case.solver(strided), expected)
    assert torch.equal(
        case.solver(scores[:, :1].expand(4, 6, *case.instance))[:, 3], expected[:, 0]
    )


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_any_number_of_threads(case: Case, device: torch.device, threads: int):
    scores = case.scores(20_000).to(device)
    expected = case.solver(scores)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        assert torch.equal(case.solver(scores), expected)
    finally:
        torch.set_num_threads(before)


def test_a_full_mask_changes_nothing(case: Case, device: torch.device):
    scores = case.scores(10).to(device)
    mask = torch.ones(case.instance, dtype=torch.bool, device=device)
    assert torch.equal(case.solver(scores, mask=mask), case.solver(scores))


def test_nan_gives_a_row_of_nan_and_a_status(case: Case, device: torch.device):
    scores = case.scores(2, 3).to(device)
    expected = case.solver(scores)
    scores[1, 2].view(-1)[1] = float("nan")
    expected[1, 2] = float("nan")
    z, status = aimle.solve(case.solver, scores, return_status=True)
    torch.testing.assert_close(z, expected, rtol=0, atol=0, equal_nan=True)
    assert status.tolist() == [[0, 0, 0], [0, 0, aimle.Status.NAN]]
    torch.testing.assert_close(case.solver(scores), expected, rtol=0, atol=0, equal_nan=True)
    with pytest.raises(ValueError, match=r"row \(1, 2\): expected numbers but got scores\[1, 2"):
        aimle.solve(case.solver, scores, check=True)


def test_z_carries_no_gradient(case: Case, device: torch.device):
    scores = case.scores(2).to(device).requires_grad_()
    assert not case.solver(scores).requires_grad


def test_inputs_are_left_alone(case: Case, device: torch.device):
    scores = case.scores(3).to(device)
    before = scores.clone()
    case.solver(scores)
    assert torch.equal(scores, before)


def test_meta_tensors_give_shapes(case: Case):
    z, status = aimle.solve(case.solver, case.scores(2, 3).to("meta"), return_status=True)
    assert z.shape == (2, 3, *case.instance)
    assert status.shape == (2, 3)


# ---- Each solver ---------------------------------------------------------------------------------


def test_ties_go_to_the_lower_index(device: torch.device):
    generator = torch.Generator().manual_seed(5)
    scores = torch.randint(-2, 3, (500, 12), generator=generator).float().to(device)
    rows = scores.cpu().numpy()
    for k in (0, 1, 5, 12):
        expected = torch.from_numpy(np.stack([oracles.topk(row, k) for row in rows]))
        assert torch.equal(aimle.TopK(k)(scores).cpu(), expected)
    expected = torch.from_numpy(np.stack([oracles.argmax(row) for row in rows]))
    assert torch.equal(aimle.Argmax()(scores).cpu(), expected)


def test_topk_masks_and_k_per_row(device: torch.device):
    generator = torch.Generator().manual_seed(6)
    scores = torch.randn(2, 200, 9, generator=generator)
    mask = torch.rand(2, 200, 9, generator=generator) < 0.7
    k = (mask.sum(-1) * torch.rand(2, 200, generator=generator)).long()
    z = aimle.TopK(3)(scores.to(device), mask=mask.to(device), k=k.to(device)).cpu()
    for index in np.ndindex(2, 200):
        expected = oracles.topk(scores[index].numpy(), int(k[index]), mask[index].numpy())
        assert torch.equal(z[index], torch.from_numpy(expected)), (
            index,
            scores[index],
            mask[index],
        )


def test_masks_and_k_broadcast(device: torch.device):
    scores = torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(7)).to(device)
    mask = torch.tensor([True, True, False, True, True, False], device=device)
    assert torch.equal(
        aimle.TopK(2)(scores, mask=mask), aimle.TopK(2)(scores, mask=mask.expand(3, 4, 6).clone())
    )
    rows = torch.rand(4, 1, device=device) < 2
    assert torch.equal(aimle.TopK(2)(scores, mask=rows), aimle.TopK(2)(scores))
    k = torch.tensor([[1], [2], [6]], device=device)
    z = aimle.TopK(2)(scores, k=k)
    assert z.sum(-1).tolist() == [[1] * 4, [2] * 4, [6] * 4]
    assert torch.equal(
        aimle.TopK(2)(scores, k=torch.tensor(3, device=device)), aimle.TopK(3)(scores)
    )
    assert torch.equal(aimle.TopK(2)(scores, k=3), aimle.TopK(3)(scores))


def test_k_per_row_may_exceed_the_solvers_own_range(device: torch.device):
    scores = torch.randn(2, 3, device=device)
    assert aimle.TopK(99)(scores, k=torch.tensor([1, 3], device=device)).sum(-1).tolist() == [1, 3]


@pytest.mark.parametrize("solver", [aimle.Argmax(), aimle.TopK(2)])
def test_minus_infinity_counts_as_masked(device: torch.device, solver: aimle.Solver):
    scores = torch.randn(50, 8, generator=torch.Generator().manual_seed(8)).to(device)
    mask = torch.arange(8, device=device) % 3 != 0
    masked = scores.masked_fill(~mask, -torch.inf)
    assert torch.equal(solver(masked), solver(scores, mask=mask))


def test_masked_trees(device: torch.device):
    generator = torch.Generator().manual_seed(9)
    scores = torch.rand(300, 15, generator=generator)
    mask = torch.rand(300, 15, generator=generator) < 0.6
    z, status = aimle.solve(
        aimle.SpanningTree(6), scores.to(device), mask=mask.to(device), return_status=True
    )
    outcomes = set()
    for row in range(300):
        expected = oracles.spanning_tree(scores[row].numpy(), 6, mask[row].numpy())
        outcomes.add(int(status[row]))
        if expected.sum() == 5:
            assert status[row] == aimle.Status.OK
            assert torch.equal(z[row].cpu(), torch.from_numpy(expected))
        else:
            assert status[row] == aimle.Status.DISCONNECTED
            assert z[row].isnan().all()
    assert outcomes == {aimle.Status.OK, aimle.Status.DISCONNECTED}


def test_masked_grids(device: torch.device):
    generator = torch.Generator().manual_seed(10)
    costs = torch.rand(200, 5, 6, generator=generator, dtype=torch.float64) + 0.1
    mask = torch.rand(200, 5, 6, generator=generator) < 0.6
    mask[:, 0, 0] = mask[:, -1, -1] = True
    z, status = aimle.solve(
        aimle.GridPath(), costs.to(device), mask=mask.to(device), return_status=True
    )
    walls = costs.masked_fill(~mask, torch.inf).to(device)
    assert torch.equal(aimle.solve(aimle.GridPath(), walls, return_status=True)[1], status)
    for row in range(200):
        expected = oracles.grid_path(costs[row].numpy(), mask=mask[row].numpy())
        connected = expected[0, 0] == 1
        assert status[row] == (aimle.Status.OK if connected else aimle.Status.DISCONNECTED)
        if connected:
            assert torch.equal(z[row].cpu(), torch.from_numpy(expected))
    assert set(status.tolist()) == {aimle.Status.OK, aimle.Status.DISCONNECTED}


def test_negative_costs_are_clipped(device: torch.device):
    costs = torch.randn(50, 4, 4, generator=torch.Generator().manual_seed(11)).to(device)
    assert torch.equal(aimle.GridPath()(costs), aimle.GridPath()(costs.clamp(min=0)))
    z, status = aimle.solve(aimle.GridPath(negative="error"), costs, return_status=True)
    assert torch.equal(status == aimle.Status.NEGATIVE_COST, (costs < 0).any(-1).any(-1))
    assert torch.equal(z.isnan().all(-1).all(-1), status == aimle.Status.NEGATIVE_COST)


def test_a_lone_vertex_is_a_tree(device: torch.device):
    z, status = aimle.solve(
        aimle.SpanningTree(1), torch.empty(3, 0, device=device), return_status=True
    )
    assert z.shape == (3, 0)
    assert status.tolist() == [0, 0, 0]


def test_symmetrise_is_the_mean_of_both_directions(device: torch.device):
    n = 5
    position = {arc: index for index, arc in enumerate(oracles.arcs(n))}
    scores = torch.randn(2, 3, n * (n - 1), dtype=torch.float64, device=device)
    expected = torch.empty_like(scores)
    for (i, j), index in position.items():
        expected[..., index] = (scores[..., index] + scores[..., position[j, i]]) / 2
    torch.testing.assert_close(aimle.symmetrise(scores, n), expected, rtol=1e-15, atol=0)
    assert aimle.symmetrise(scores.bfloat16(), n).dtype == torch.bfloat16
    assert torch.autograd.gradcheck(
        lambda x: aimle.symmetrise(x, n), scores.requires_grad_(), check_batched_grad=False
    )


def test_solvers_are_values():
    assert aimle.TopK(3) == aimle.TopK(3) != aimle.TopK(4)
    assert aimle.SpanningTree(3) != aimle.TopK(3)
    assert len({aimle.GridPath(), aimle.GridPath(8), aimle.GridPath(4), aimle.Argmax()}) == 3
    with pytest.raises(AttributeError):
        aimle.TopK(3).k = 4


def test_status_describes_itself():
    assert aimle.Status(1).describe() == "a score is NaN"
    assert all(status.describe() for status in aimle.Status)


@pytest.mark.parametrize(
    "shown",
    [
        "Argmax()",
        "TopK(k=3)",
        "SpanningTree(n=4)",
        "GridPath()",
        "GridPath(neighbourhood=4, target=(0, -1))",
        "Chain()",
        "Chain(length=5, labels=3)",
        "Arborescence()",
        "Arborescence(single_root=True)",
    ],
)
def test_a_solver_shows_the_settings_it_was_given(shown: str):
    solver = eval(shown, vars(aimle))
    assert repr(solver) == shown
    assert eval(repr(solver), vars(aimle)) == solver
