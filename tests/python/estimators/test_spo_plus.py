"""The SPO+ loss against its definition over all structures, listed one by one."""

import pytest
import torch
from directed_trees import FIRST, SECOND, TREE, folded, spread
from layer_cases import PROBLEMS, Problem, leaf, randn
from torch import Tensor
from torch.library import opcheck

import aimle

ops = torch.ops.aimle
CASES = {name: PROBLEMS[name] for name in PROBLEMS if not name.startswith("grid")}
CASES |= {
    "grid": Problem(aimle.GridPath(), (3, 4)),
    "grid of 4 neighbours": Problem(aimle.GridPath(4), (3, 3)),
    "strict grid": Problem(aimle.GridPath(negative="error"), (3, 3)),
}
EVERY = [(name, sense) for name, case in CASES.items() for sense in case.senses]
every_case = pytest.mark.parametrize(("name", "sense"), EVERY)
INSTANCES = 300


def listed(case: Problem) -> Tensor:
    """Every structure, [N, entries]."""
    return aimle.exact.structures(case.solver, case.theta(1)).double().flatten(1)


def draw(case: Problem, count: int, seed: int, spread: float = 3.0) -> tuple[Tensor, Tensor]:
    """Predictions and true coefficients, of which costs are often below zero in 2 theta - c."""
    theta = spread * case.theta(count, seed=seed)
    return theta, case.theta(count, seed=seed + 1)


def dot(a: Tensor, b: Tensor) -> Tensor:
    return (a * b).flatten(1).sum(1)


def sign_of(sense: str) -> int:
    return 1 if sense == "max" else -1


def regret(case: Problem, sense: str, theta: Tensor, truth: Tensor) -> Tensor:
    """The value under the truth that the solution of theta loses compared with the best."""
    sign, own = sign_of(sense), sign_of(case.solver.sense)
    best = (sign * truth.flatten(1) @ listed(case).T).amax(1)
    return best - sign * dot(truth, case.solver(theta * sign * own))


def by_listing(case: Problem, sense: str, theta: Tensor, truth: Tensor) -> Tensor:
    """max_z s <x, z> - s <x, z*>, over all structures; of costs, over all supersets of them."""
    sign, x = sign_of(sense), (2 * theta - truth).flatten(1)
    structures = listed(case)
    best = structures[(sign * truth.flatten(1) @ structures.T).argmax(1)]
    values = sign * x @ structures.T
    if case.solver.has_costs:  # a superset adds what is below zero outside of the structure
        values = values + x.clamp(max=0).neg() @ (1 - structures).T
    return values.amax(1) - sign * (x * best).sum(1)


@every_case
def test_the_loss_is_its_definition_and_an_upper_bound_of_the_regret(name: str, sense: str):
    case = CASES[name]
    for seed, wide in ((0, 3.0), (2, 0.5), (4, 1.0)):
        theta, truth = draw(case, INSTANCES // 3, seed, wide)
        loss = aimle.spo_plus_loss(theta, truth, case.solver, sense=sense)
        assert loss.shape == (INSTANCES // 3,)
        torch.testing.assert_close(loss, by_listing(case, sense, theta, truth), msg=f"{seed=}")
        lost = regret(case, sense, theta, truth)
        assert (lost > -1e-9).all(), f"{seed=}"
        assert (loss > lost - 1e-9).all(), f"{seed=}"
        assert (loss > lost + 1e-3).any(), f"{seed=}"
        perfect = aimle.spo_plus_loss(truth, truth, case.solver, sense=sense)
        assert (perfect == 0).all(), f"{seed=}"


@pytest.mark.parametrize("name", ["grid", "graph"])
def test_the_bound_holds_for_predicted_costs_below_zero(name: str):
    case = CASES[name]
    theta, truth = randn(INSTANCES, *case.instance), case.theta(INSTANCES, seed=1)
    assert (theta < 0).any()
    loss = aimle.spo_plus_loss(theta, truth, case.solver)
    torch.testing.assert_close(loss, by_listing(case, "min", theta, truth))
    assert (loss > regret(case, "min", theta, truth) - 1e-9).all()
    # True costs below zero count as zero.
    below = torch.where(truth < 1, truth - 1, truth)
    loss = aimle.spo_plus_loss(theta, below, case.solver)
    assert torch.equal(loss, aimle.spo_plus_loss(theta, below.clamp(min=0), case.solver))


@every_case
def test_the_loss_is_convex(name: str, sense: str):
    case = CASES[name]
    a, truth = draw(case, INSTANCES, 0)
    b = randn(INSTANCES, *case.instance, seed=7)
    share = torch.rand(INSTANCES, generator=torch.Generator().manual_seed(3)).double()
    wide = share.view(-1, *[1] * (a.dim() - 1))

    def loss(theta: Tensor) -> Tensor:
        return aimle.spo_plus_loss(theta, truth, case.solver, sense=sense)

    chord = share * loss(a) + (1 - share) * loss(b)
    assert (loss(wide * a + (1 - wide) * b) <= chord + 1e-9).all()
    # A gradient of a convex function supports it from below.
    at = leaf(a)
    value = loss(at)
    value.sum().backward()
    assert (loss(b) >= value.detach() + dot(at.grad, b - a) - 1e-9).all()


@every_case
def test_the_gradient_is_the_slope_of_the_value(name: str, sense: str):
    case = CASES[name]
    theta, truth = draw(case, 4, 0)
    step = 1e-7  # less than the distance to another solution
    at = leaf(theta)
    truth.requires_grad_()
    aimle.spo_plus_loss(at, truth, case.solver, sense=sense).sum().backward()
    assert truth.grad is None
    slopes = torch.zeros_like(theta)
    for entry in range(theta[0].numel()):
        move = torch.zeros_like(theta)
        move.flatten(1)[:, entry] = step
        up, down = (
            aimle.spo_plus_loss(theta + sign * move, truth, case.solver, sense=sense)
            for sign in (1, -1)
        )
        slopes.flatten(1)[:, entry] = (up - down).detach() / (2 * step)
    torch.testing.assert_close(at.grad, slopes, atol=1e-5, rtol=0)
    assert at.grad.abs().sum() > 0


@every_case
def test_callables_have_the_bits_of_native_solvers(name: str, sense: str):
    case = CASES[name]
    theta, truth = draw(case, 20, 0)
    calls = []

    def solver(x: Tensor) -> Tensor:
        calls.append(tuple(x.shape))
        return case.solver(x)

    solver.sense = case.solver.sense
    solver.has_costs = case.solver.has_costs
    found = case.solver(truth * sign_of(sense) * sign_of(case.solver.sense))
    for given in (None, found, found.bool()):
        of_native, of_callable = leaf(theta), leaf(theta)
        native = aimle.spo_plus_loss(of_native, truth, case.solver, sense=sense, solution=given)
        loss = aimle.spo_plus_loss(of_callable, truth, solver, sense=sense, solution=given)
        if name == "directed tree":  # adds both directions of an edge first
            torch.testing.assert_close(loss, native)
        else:
            assert torch.equal(loss, native)
        native.sum().backward()
        loss.sum().backward()
        assert torch.equal(of_native.grad, of_callable.grad)
    # One call, of both unless the solution is known.
    assert calls == [(40, *case.instance), (20, *case.instance), (20, *case.instance)]


def test_callables_without_has_costs_are_given_the_difference_itself():
    seen = []

    def solver(x: Tensor) -> Tensor:
        seen.append(x)
        return aimle.Argmax()(-x)

    theta, truth = randn(3, 5), randn(3, 5, seed=2)
    loss = aimle.spo_plus_loss(theta, truth, solver, sense="min")
    assert torch.equal(seen[0], torch.cat([2 * theta - truth, truth]))
    assert torch.equal(loss, aimle.spo_plus_loss(theta, truth, aimle.Argmax(), sense="min"))


def test_a_batch_of_several_dimensions_and_instance_dims():
    theta, truth = randn(2, 3, 4, 5), randn(2, 3, 4, 5, seed=2)
    loss = aimle.spo_plus_loss(theta, truth, aimle.TopK(2))
    flat = aimle.spo_plus_loss(theta.view(-1, 5), truth.view(-1, 5), aimle.TopK(2))
    assert torch.equal(loss, flat.view(2, 3, 4))
    shapes = []

    def largest(x: Tensor) -> Tensor:
        shapes.append(tuple(x.shape))
        return (x == x.flatten(1).amax(1).view(-1, *[1] * (x.dim() - 1))).to(x.dtype)

    for told, batch in (({}, [2]), ({"instance_dims": 2}, [2, 3]), ({"instance_dims": 4}, [])):
        assert list(aimle.spo_plus_loss(theta, truth, largest, **told).shape) == batch
    assert shapes == [(4, 3, 4, 5), (12, 4, 5), (2, 2, 3, 4, 5)]
    one = aimle.spo_plus_loss(theta[0, 0, 0], truth[0, 0, 0], aimle.TopK(2))
    assert torch.equal(one, loss[0, 0, 0])


def test_k_and_weights_per_row():
    theta, truth = randn(4, 6), randn(4, 6, seed=2)
    k = torch.tensor([1, 4, 0, 2])
    loss = aimle.spo_plus_loss(theta, truth, aimle.TopK(4), k=k)
    data = aimle.Knapsack.pack(torch.randint(1, 5, (4, 6)), torch.tensor([5, 6, 7, 8]))
    bags = aimle.Knapsack([1] * 6, 3, max_capacity=20)
    packed = aimle.spo_plus_loss(theta, truth, bags, data=data)
    for row in range(4):
        one = (theta[row], truth[row])
        assert torch.equal(loss[row], aimle.spo_plus_loss(*one, aimle.TopK(int(k[row]))))
        assert torch.equal(packed[row], aimle.spo_plus_loss(*one, bags, data=data[row]))
    with pytest.raises(TypeError, match="takes no k"):
        aimle.spo_plus_loss(theta, truth, aimle.Argmax(), k=2)


@pytest.mark.parametrize("own", ["native", "callable"])
def test_masked_and_infinite_entries_add_nothing(own: str):
    theta, truth = randn(50, 6), randn(50, 6, seed=2)
    mask = torch.tensor([True, False, True, True, False, True])
    for sense, worst in (("max", -torch.inf), ("min", torch.inf)):

        def solver(x: Tensor) -> Tensor:
            return aimle.TopK(2)(x)

        solver.sense = "max"
        used = aimle.TopK(2) if own == "native" else solver
        expected = leaf(theta[:, mask])
        want = aimle.spo_plus_loss(expected, truth[:, mask], aimle.TopK(2), sense=sense)
        want.sum().backward()
        wall = lambda x, worst=worst: x.masked_fill(~mask, worst)  # noqa: E731
        for a, c, allowed in (
            (theta, truth, mask),
            (wall(theta), wall(truth), mask),
            (theta.masked_fill(~mask, torch.nan), truth.masked_fill(~mask, torch.nan), mask),
            (wall(theta), wall(truth), None),  # inf - inf
            (theta, wall(truth), None),  # 2 theta - inf has the wrong sign
        ):
            at = leaf(a)
            loss = aimle.spo_plus_loss(at, c, used, sense=sense, mask=allowed)
            loss.sum().backward()
            torch.testing.assert_close(loss, want)
            assert torch.equal(at.grad[:, mask], expected.grad)
            assert (at.grad[:, ~mask] == 0).all()


def test_walls_of_a_grid():
    case = CASES["grid"]
    theta, truth = draw(case, 20, 0)
    mask = torch.ones(3, 4, dtype=torch.bool)
    mask[1, 1] = mask[0, 2] = False
    masked = leaf(theta)
    want = aimle.spo_plus_loss(masked, truth, case.solver, mask=mask)
    want.sum().backward()
    assert (masked.grad[:, ~mask] == 0).all()
    walls = truth.masked_fill(~mask, torch.inf)
    for a in (theta, theta.masked_fill(~mask, torch.inf)):
        at = leaf(a)
        loss = aimle.spo_plus_loss(at, walls, case.solver)
        loss.sum().backward()
        assert torch.equal(loss, want)
        assert torch.equal(at.grad, masked.grad)


def test_directed_trees_are_undirected_ones_on_the_sums():
    theta, truth = randn(8, 20), randn(8, 20, seed=2)
    mask = torch.ones(20, dtype=torch.bool)
    mask[6] = False
    directed, undirected = leaf(theta), leaf(folded(theta))
    sums = mask[FIRST] & mask[SECOND]
    for solution in (None, TREE(truth, mask=mask)):
        directed.grad = undirected.grad = None
        known = None if solution is None else solution[:, FIRST]
        loss = aimle.spo_plus_loss(directed, truth, TREE, mask=mask, solution=solution)
        want = aimle.spo_plus_loss(undirected, folded(truth), TREE, mask=sums, solution=known)
        assert torch.equal(loss, want)
        loss.sum().backward()
        want.sum().backward()
        assert torch.equal(directed.grad, spread(undirected.grad))
        assert directed.grad.abs().sum() > 0


def test_types_are_promoted_and_the_gradient_has_that_of_theta():
    solver = aimle.TopK(2)
    base, other = torch.randint(-9, 9, (2, 30, 6), generator=torch.Generator().manual_seed(0))
    want = aimle.spo_plus_loss(base.double(), other.double(), solver)
    for theta, truth, result in (
        (torch.float32, torch.float32, torch.float32),
        (torch.bfloat16, torch.float32, torch.float32),
        (torch.float32, torch.float64, torch.float64),
        (torch.float16, torch.int64, torch.float16),
        (torch.float64, torch.float32, torch.float64),
    ):
        for used in (solver, lambda x: solver(x)):
            at = leaf(base.to(theta))
            loss = aimle.spo_plus_loss(at, other.to(truth), used)
            loss.sum().backward()
            assert (loss.dtype, at.grad.dtype) == (result, theta)
            assert torch.equal(loss.double(), want)


def test_bad_arguments_are_named():
    theta, topk = torch.zeros(3, 4), aimle.TopK(2)
    for call, error, message in (
        (
            lambda: aimle.spo_plus_loss(theta, theta[0], topk),
            ValueError,
            r"true_theta of the shape of theta, \[3, 4\], but got \[4\]",
        ),
        (
            lambda: aimle.spo_plus_loss(theta, theta, topk, solution=theta[:2]),
            ValueError,
            r"solution of the shape of theta, \[3, 4\], but got \[2, 4\]",
        ),
        (
            lambda: aimle.spo_plus_loss(theta, [1.0], topk),
            TypeError,
            r"true_theta to be a tensor but got list: pass torch.as_tensor\(true_theta\)",
        ),
        (
            lambda: aimle.spo_plus_loss(theta, theta.cfloat(), topk),
            TypeError,
            r"true_theta of a real type but got torch.complex64: pass true_theta.real",
        ),
        (
            lambda: aimle.spo_plus_loss(theta, theta.to("meta"), topk),
            ValueError,
            r"true_theta on the device of theta, cpu, but got meta: pass true_theta.to\(theta.dev",
        ),
        (
            lambda: aimle.spo_plus_loss(theta.long(), theta, topk),
            TypeError,
            r"theta of a floating-point type but got torch.int64: pass theta.float\(\)",
        ),
        (lambda: aimle.spo_plus_loss(theta, theta, "topk"), TypeError, "aimle.solver makes one"),
        (lambda: aimle.spo_plus_loss(theta, theta, topk, sense="up"), ValueError, "'max' or 'min'"),
        (
            lambda: aimle.spo_plus_loss(theta, theta, topk, mask=theta),
            TypeError,
            "a mask of bool but got torch.float32",
        ),
        (
            lambda: aimle.spo_plus_loss(theta, theta, aimle.GridPath(), sense="max"),
            ValueError,
            "expected sense='min' for GridPath.*leave out sense",
        ),
        (
            lambda: aimle.spo_plus_loss(theta, theta, topk, fractional=True),
            TypeError,
            "only a callable solver takes fractional=True",
        ),
        (
            lambda: aimle.spo_plus_loss(theta, theta, lambda x: x + 0.5),
            ValueError,
            r"\[aimle.spo_plus_loss\] the solver returned a fractional solution",
        ),
        (
            lambda: aimle.spo_plus_loss(theta, theta, topk, true_sol=theta),
            TypeError,
            "did you mean 'solution'",
        ),
        (
            lambda: aimle.spo_plus_loss(theta, true_cost=theta, solver=topk),
            TypeError,
            "did you mean 'true_theta'",
        ),
        (
            lambda: aimle.spo_plus_loss(
                theta, theta - 1, aimle.GridPath(negative="error"), instance_dims=2
            ),
            ValueError,
            "expected costs >= 0",
        ),
        (
            lambda: ops.spo_plus_loss(theta, theta[0], None, None, None, "topk:k=2", "max"),
            ValueError,
            "true_theta of the shape of theta",
        ),
        (
            lambda: ops.spo_plus_loss(theta, theta, None, None, None, "topk:k=2", "up"),
            ValueError,
            "sense to be",
        ),
    ):
        with pytest.raises(error, match=message):
            call()


def test_opcheck():
    theta, truth = randn(4, 6, dtype=torch.float32), randn(4, 6, seed=2, dtype=torch.float32)
    theta.requires_grad_()
    mask = torch.arange(6) < 5
    z = aimle.TopK(2)(truth)
    for solution in (None, z):
        for call in ((mask, torch.tensor([1, 2, 0, 2])), (None, None)):
            arguments = (theta, truth, solution, *call, "topk:k=2", "max")
            opcheck(ops.spo_plus_loss.default, arguments)
    tree = (theta, truth, None, None, None, "spanning_tree:n=3", "min")
    opcheck(ops.spo_plus_loss.default, tree)
    opcheck(ops.spo_plus_loss.default, (theta, truth, None, None, None, "grid_path", "min"))
    for flag in (False, True):
        opcheck(ops.spo_plus_scores.default, (theta, truth, flag))
        opcheck(ops.spo_plus.default, (theta, z, z.flip(0), mask, flag, 1, not flag))


def by_sorting(x: Tensor) -> Tensor:
    return torch.zeros_like(x).scatter(-1, x.topk(2).indices, 1.0)


@pytest.mark.parametrize(
    "solver",
    [aimle.TopK(2), aimle.SpanningTree(4), by_sorting],
    ids=["topk", "directed tree", "callable"],
)
@pytest.mark.parametrize("known", [True, False])
def test_one_compiled_graph_serves_every_size(solver, known: bool):
    def loss(theta: Tensor, truth: Tensor, solution: Tensor | None) -> Tensor:
        return aimle.spo_plus_loss(theta, truth, solver, solution=solution)

    torch._dynamo.reset()
    compiled = torch.compile(loss, fullgraph=True, dynamic=True, backend="aot_eager")
    for batch, stance in ((4, "default"), (5, "fail_on_recompile"), (9, "fail_on_recompile")):
        theta, truth = randn(batch, 12), randn(batch, 12, seed=batch)
        solution = solver(truth) if known else None
        results = []
        with torch.compiler.set_stance(stance):
            for function in (loss, compiled):
                at = leaf(theta)
                value = function(at, truth, solution)
                value.sum().backward()
                results.append((value.detach(), at.grad))
        torch.testing.assert_close(results[1], results[0])


def test_training_with_the_loss_finds_the_true_path():
    """From predictions that are all alike, over costs that 2 theta - c makes negative."""
    truth = torch.ones(1, 4, 4)
    truth[0, :, 0] = truth[0, 3] = 0.01
    solver = aimle.GridPath()
    raw = torch.zeros(1, 4, 4, requires_grad=True)
    optimiser = torch.optim.Adam([raw], lr=0.05)
    assert not torch.equal(solver(torch.ones(1, 4, 4)), solver(truth))
    for _ in range(100):
        loss = aimle.spo_plus_loss(torch.nn.functional.softplus(raw), truth, solver)
        optimiser.zero_grad()
        loss.sum().backward()
        optimiser.step()
    assert torch.equal(solver(torch.nn.functional.softplus(raw)), solver(truth))
