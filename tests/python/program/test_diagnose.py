"""`aimle.diagnose`: correct numbers for a user's batch and loss."""

import json
from pathlib import Path

import pytest
import torch

import aimle as library


def by_name(rows: list[dict], samples: int) -> dict[str, dict]:
    return {row["estimator"]: row for row in rows if row["samples"] == samples}


def quartic(z: torch.Tensor) -> torch.Tensor:
    weights = torch.linspace(-1, 1, z.shape[-1], dtype=z.dtype)
    return (z * weights).sum(-1).pow(4) + (z * weights.flip(-1)).sum(-1)


def test_on_a_batch_and_any_loss(tmp_path: Path):
    torch.manual_seed(0)
    theta = torch.randn(3, 7)
    layer = library.AIMLE(library.TopK(2), nb_samples=5)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    found = library.diagnose(
        layer, theta, quartic, nb_samples=(400,), repeats=12, warmup=30, lambdas=(0.5,)
    )
    assert found.truth == "exact"
    rows = by_name(found.rows, 400)
    assert {"your layer", "aimle", "imle", "thresholds", "sfe"} <= set(rows)
    assert "gumbel_softmax" not in rows
    assert rows["sfe"]["bias"] < 4 * (rows["sfe"]["variance"] / 12) ** 0.5
    assert rows["sfe"]["cosine"] > 0.8
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert "S = 400" in str(found)
    pytest.importorskip("matplotlib")
    assert found.save(tmp_path / "out").name == "report.html"
    assert len(json.loads((tmp_path / "out/diagnosis.json").read_text())["results"]) == len(rows)


def test_the_truth_of_a_long_run_agrees_with_the_exact_one():
    torch.manual_seed(1)
    theta = torch.randn(1, 5)
    loss = torch.tensor([0.0, 1.0, -2.0, 0.5, 3.0])

    def linear(z: torch.Tensor) -> torch.Tensor:
        return (z * loss).sum(-1)

    # As a callable the solver has no exact distribution; for argmax the two models are the same.
    def solver(scores: torch.Tensor) -> torch.Tensor:
        return library.solve(library.Argmax(), scores)

    from aimle.diagnosis.truth import Model, find_truth

    exact, about, error = find_truth(library.Argmax(), Model(), theta, linear, 1000)
    assert (about, error) == ("exact", 0.0)
    run_, about, error = find_truth(solver, Model(), theta, linear, 400_000)
    assert about == "perturbation model, long run"
    assert 0 < error < 0.05
    assert (run_ - exact).norm() / exact.norm() < 4 * error


@pytest.mark.parametrize(
    ("solver", "shape"),
    [
        (library.Argmax(), (6,)),
        (library.TopK(2), (6,)),
        (library.SpanningTree(4), (6,)),
        (library.Bernoulli(), (4,)),
        (library.Chain(), (2, 2, 2)),
        (library.LatticePath(), (3, 3)),
    ],
    ids=str,
)
def test_the_closed_form_of_a_linear_loss_is_that_of_the_list(solver, shape: tuple[int, ...]):
    from aimle.diagnosis.losses import RecordedGradients, SquaredDistance
    from aimle.diagnosis.truth import Model, find_truth

    torch.manual_seed(5)
    theta = torch.randn(1, *shape)
    noise = library.Logistic() if isinstance(solver, library.Bernoulli) else library.Gumbel()
    model = Model(noise, 0.7)
    for loss in (SquaredDistance(torch.rand(shape)), RecordedGradients(torch.randn(3, *shape))):
        found, about, _ = find_truth(solver, model, theta, loss.mean, 200, loss.price)
        listed, other, _ = find_truth(solver, model, theta, loss.mean, 200)
        assert about == other == "exact"
        torch.testing.assert_close(found, listed, rtol=1e-5, atol=1e-6)


def test_recorded_gradients_have_the_same_weight():
    from aimle.diagnosis.losses import RecordedGradients

    loss = RecordedGradients(torch.eye(3))
    z = torch.ones(1, 2, 3) * torch.tensor([1.0, 2.0, 3.0])
    assert [loss(z).tolist() for _ in range(3)] == [[[1.0, 2.0]], [[3.0, 1.0]], [[2.0, 3.0]]]
    assert loss.mean(z).tolist() == [[2.0, 2.0]]


@pytest.mark.parametrize(
    "layer",
    [
        library.DPO(library.TopK(2)),
        library.CovarianceAIMLE(library.TopK(2)),
        library.SFE(library.TopK(2), baseline="leave_one_out", nb_samples=2),
    ],
    ids=lambda layer: type(layer).__name__,
)
def test_a_layer_that_compares_samples_is_left_out_at_one(layer: torch.nn.Module):
    theta = torch.randn(2, 5, generator=torch.Generator().manual_seed(0))
    settings = {"estimators": ["ste"], "repeats": 2, "warmup": 0, "truth_samples": 200}
    found = library.diagnose(layer, theta, lambda z: (z * theta[0]).sum(-1).square(), **settings)
    measured = [(row["estimator"], row["samples"]) for row in found.rows]
    assert measured == [("ste", 1), ("your layer", 10), ("ste", 10)]


def test_a_long_run_in_parts_is_the_same_within_its_error(monkeypatch: pytest.MonkeyPatch):
    """Of grids that are too large for the memory otherwise."""
    from aimle.diagnosis import truth

    cells = torch.arange(30.0).view(5, 6)
    costs, dear = 1 + (cells * 7 % 5 / 10).unsqueeze(0), cells % 2
    model = truth.Model(library.Normal(), 0.3)
    drawn = []

    def loss(z: torch.Tensor) -> torch.Tensor:
        drawn.append(z.shape[1])
        return (z - dear).square().flatten(2).sum(-1)

    def found() -> tuple[torch.Tensor, float]:
        torch.manual_seed(3)
        gradient, _, error = truth.find_truth(library.GridPath(), model, costs, loss, 40_000)
        return gradient, error

    whole, error = found()
    assert set(drawn) == {2000}
    monkeypatch.setattr(truth, "_MOST_NUMBERS", 30 * 50)
    drawn.clear()
    parts, _ = found()
    assert drawn == [50] * 800
    assert 0 < (parts - whole).norm() / whole.norm() < 4 * 2**0.5 * error < 0.6


def test_a_dearer_cell_is_taken_less():
    from aimle.diagnosis.truth import find_truth, model_of

    torch.manual_seed(0)
    solver = library.GridPath()

    def takes_the_middle(z: torch.Tensor) -> torch.Tensor:
        return z[..., 1, 1]

    costs = torch.full((1, 3, 3), 0.7)
    truth = find_truth(solver, model_of(None, solver), costs, takes_the_middle, 20_000)[0]
    assert truth[0, 1, 1] < -0.1


def test_the_others_have_the_temperature_of_costs():
    """The layer beside the same estimator in its own default noise."""
    torch.manual_seed(0)
    layer = library.estimator("imle_central", library.GridPath(), lambda_=0.3)
    settings = {"estimators": ["imle_central"], "lambdas": (0.3,), "nb_samples": 500}
    found = library.diagnose(layer, torch.rand(1, 5, 5) + 0.5, spread, **settings)
    yours, other = found.rows
    for name in ("cosine", "norm_ratio", "clipped"):
        assert yours[name] == pytest.approx(other[name], abs=0.05), name


def test_estimators_may_have_settings():
    theta, names = torch.randn(1, 5), ["sfe:baseline=leave_one_out", "imle:lambda=2", "identity"]
    settings = {"nb_samples": (1, 4), "repeats": 2, "lambdas": (1.0, 3.0)}
    found = library.diagnose(library.TopK(2), theta, quartic, estimators=names, **settings)
    labels = [(row["samples"], row["estimator"]) for row in found.rows]
    same = [(1, "imle"), (1, "identity"), (4, names[0]), (4, "imle"), (4, "identity")]
    assert labels == same  # the first needs two samples
    assert {row["lambda"] for row in found.rows if row["estimator"] == "imle"} == {2}
    for wrong in ("imel", "imle:lambda=-1", "imle:lambda", "sfe:baseline=mean"):
        with pytest.raises(ValueError, match="expected"):
            library.diagnose(library.TopK(2), theta, quartic, estimators=[wrong], nb_samples=1)


def test_knapsacks_under_gumbel_noise_have_a_truth():
    layer = library.IMLE(library.Knapsack([3, 1, 4], capacity=5), noise="gumbel")
    settings = {"nb_samples": 2, "repeats": 2, "estimators": ["ste"], "truth_samples": 400}
    found = library.diagnose(layer, torch.rand(1, 3), spread, **settings)
    assert found.truth == "score function, long run"


def spread(z: torch.Tensor) -> torch.Tensor:
    """A linear loss, in which every entry of an instance counts otherwise."""
    flat = z.flatten(2)
    return (flat * torch.linspace(-1, 2, flat.shape[-1])).sum(-1)


def test_a_short_truth_uses_one_thread_and_leaves_the_number_as_it_was():
    """Threads wait busily at the end of each short operation: most of the time of small batches."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        seen = []

        def loss(z: torch.Tensor) -> torch.Tensor:
            seen.append((z.shape[1], torch.get_num_threads()))
            return z.flatten(2).sum(-1)

        solver, theta = library.GridPath(), torch.rand(2, 6, 6) + 0.5
        library.diagnose(solver, theta, loss, nb_samples=1, estimators=["ste"], repeats=2)
        assert {threads for samples, threads in seen if samples > 1} == {1}
        assert {threads for samples, threads in seen if samples == 1} == {2}

        def fails(z: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no loss")

        with pytest.raises(RuntimeError, match="no loss"):
            library.diagnose(solver, theta, fails)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("solver", "shape"),
    [
        (library.Argmax(), (2, 5)),
        (library.TopK(2), (2, 5)),
        (library.SpanningTree(4), (2, 6)),
        (library.SpanningTree(4), (2, 12)),
        (library.SpanningTree(9), (1, 36)),
        (library.GridPath(), (2, 3, 3)),
        (library.LatticePath(), (2, 3, 4)),
        (library.LatticeMoves("diagonal"), (2, 4, 2, 3)),
    ],
    ids=str,
)
def test_every_solver_has_a_truth(solver: library.Solver, shape: tuple[int, ...]):
    torch.manual_seed(2)
    found = library.diagnose(
        solver,
        torch.rand(shape),
        spread,
        estimators=["ste"],
        nb_samples=(2,),
        repeats=2,
        truth_samples=400,
    )
    assert found.rows[0]["estimator"] == "ste"
    truths = {
        library.SpanningTree(9): "score function, long run",
        library.GridPath(): "perturbation model, long run",  # of Normal noise
        library.LatticePath(): "perturbation model, long run",
        library.LatticeMoves("diagonal"): "perturbation model, long run",
    }
    assert found.truth == truths.get(solver, "exact")


def test_the_share_of_clipped_costs_is_shown_for_grids():
    torch.manual_seed(2)
    settings = {"nb_samples": 2, "repeats": 2, "warmup": 2}
    costs = 0.1 + torch.rand(2, 3, 3)
    found = library.diagnose(
        library.IMLE(library.GridPath(), noise="gumbel"),
        costs,
        spread,
        estimators=["ste"],
        **settings,
    )
    yours, ste = found.rows
    assert 0 < yours["clipped"] < 0.5
    assert ste["clipped"] is None
    assert "us/call clipped" in str(found)
    found = library.diagnose(
        library.Argmax(), torch.rand(2, 4), spread, estimators=["ste"], **settings
    )
    assert found.rows[0]["clipped"] is None
    assert "clipped" not in str(found)


@pytest.mark.parametrize("shape", [(6,), (3, 6), (2, 2, 6), (3, 3, 3)], ids=str)
def test_the_cosine_is_that_of_whole_examples(shape: tuple[int, ...]):
    from aimle.diagnosis.comparison import compare

    class Given(torch.nn.Module):
        def forward(self, theta: torch.Tensor) -> torch.Tensor:
            return theta.unsqueeze(theta.dim() - dims)

    torch.manual_seed(3)
    dims = 2 if shape == (3, 3, 3) else 1
    truth, weights = torch.randn(shape, dtype=torch.float64), torch.randn(shape)
    place = len(shape) - dims

    def loss(z: torch.Tensor) -> torch.Tensor:
        return (z * weights.unsqueeze(place)).flatten(place + 1).sum(-1)

    row = compare(Given(), torch.zeros(shape), loss, truth, 2, dims)
    rows = [
        x.reshape(*shape[:place], -1).reshape(-1, 6 if dims == 1 else 9) for x in (truth, weights)
    ]
    expected = torch.cosine_similarity(rows[0], rows[1].double(), dim=-1).mean()
    assert row["cosine"] == pytest.approx(float(expected))


@pytest.mark.parametrize("native", [True, False], ids=["native", "callable"])
def test_the_layers_sense_is_everybodys(native: bool):
    torch.manual_seed(4)
    costs = torch.randn(2, 5)
    names = ["ste", "imle_central", *(["sfe"] if native else [])]
    settings = {"nb_samples": (2000,), "repeats": 4, "lambdas": (0.3,), "estimators": names}

    def cheapest(scores: torch.Tensor) -> torch.Tensor:
        return library.Argmax()(-scores)

    target = library.FixedTarget(0.3)
    layer = library.IMLE(library.Argmax() if native else cheapest, target=target, sense="min")
    for row in library.diagnose(layer, costs, spread, **settings).rows:
        assert row["cosine"] > (0.2 if row["estimator"] == "ste" else 0.8), row


def row(name: str, cosine: float, **more: object) -> dict:
    same = {"samples": 10, "cosine_se": 0.01, "bias": 1.5, "microseconds": 9.0}
    own = {"estimator": name, "lambda": None, "fixed_lambda": False, "cosine": cosine}
    return own | same | more


def advice_on(structure: str, *rows: dict) -> dict:
    (advice,) = library.Diagnosis(structure, [1, 6], "exact", 0.0, 10, [*rows]).recommendations
    return advice


def test_advice_leaves_out_estimators_whose_bias_samples_do_not_reduce():
    advice = advice_on("TopK", row("identity", 0.9), row("ste", 0.8), row("sfe", 0.7))
    assert advice["estimator"] == "sfe"
    assert advice["reason"].endswith(
        "; identity has cosine 0.900, but a bias that more samples do not reduce, and may train "
        "badly"
    )
    assert "do not reduce" not in advice_on("TopK", row("sfe", 0.7), row("exact", 0.6))["reason"]
    advice = advice_on("TopK", row("identity", 0.9), row("ste", 0.8))
    assert advice["estimator"] == "identity"
    assert advice["reason"].endswith("more samples do not reduce that, and it may train badly")


def test_advice_is_what_trains_well_on_the_structure():
    rows = [row("exact", 0.9), row("reinmax", 0.8), row("gumbel_rao", 0.85), row("aimle", 0.2)]
    assert advice_on("Argmax", *rows)["estimator"] == "gumbel_rao"
    assert "compare the two" in advice_on("Argmax", *rows)["reason"]
    assert advice_on("Argmax", rows[0], rows[3])["estimator"] == "aimle"
    rows = [row("sst", 0.9), row("thresholds", 0.8), row("aimle", 0.2)]
    assert advice_on("TopK", *rows)["estimator"] == "aimle"
    assert "soft samples" in advice_on("TopK", *rows)["reason"]
    yours = row("your layer", 0.1, alpha=0.3)
    assert advice_on("GridPath", *rows, yours)["estimator"] == "your layer"
    not_adaptive = row("your layer", 0.1, alpha=None)
    assert advice_on("GridPath", *rows, not_adaptive)["estimator"] == "aimle"
    tuned = row("imle", 0.95, **{"lambda": 2.0, "fixed_lambda": True})
    advice = advice_on("TopK", *rows, tuned)
    assert advice["estimator"] == "aimle"
    assert "imle:lambda=2 has cosine 0.950, but a lambda to tune" in advice["reason"]


def test_exact_is_recommended_for_few_samples():
    def few(samples: int, *names: str) -> list[dict]:
        return [row(name, 0.5, samples=samples) for name in names]

    for structure in ("TopK", "Bernoulli"):
        assert advice_on(structure, *few(1, "sst", "aimle", "exact"))["estimator"] == "exact"
        assert advice_on(structure, *few(3, "aimle", "exact"))["estimator"] == "exact"
        assert advice_on(structure, *few(4, "exact", "aimle"))["estimator"] == "aimle"
    assert advice_on("GridPath", *few(1, "aimle_noise", "aimle"))["estimator"] == "aimle"
    assert advice_on("Argmax", *few(1, "exact", "reinmax"))["estimator"] == "reinmax"


def test_a_long_step_is_recommended_for_linear_losses():
    torch.manual_seed(0)
    settings = {"nb_samples": 2, "repeats": 2, "warmup": 2, "estimators": ["imle", "aimle"]}
    theta = 3 * torch.randn(4, 8)
    found = library.diagnose(library.TopK(3), theta, spread, **settings)
    (advice,) = found.recommendations
    assert (advice["estimator"], advice["lambda"]) == ("imle", found.long_step)
    assert "linear in z" in advice["reason"]
    weights = torch.linspace(-1, 2, 8)
    size = float(weights.square().mean().sqrt())
    assert found.long_step == pytest.approx(1000 * float(theta.square().mean().sqrt()) / size)
    # The gradient is then the difference to the best solution for the loss.
    layer = library.estimator("imle", library.TopK(3), lambda_=found.long_step)
    rows = theta.clone().requires_grad_()
    z = layer(rows)
    spread(z).sum().backward()
    best = library.TopK(3)(-weights).expand(4, 8)
    torch.testing.assert_close(rows.grad.sign(), (z.detach()[:, 0] - best).sign())
    found = library.diagnose(library.TopK(3), theta, quartic, **settings)
    assert found.long_step is None
    assert found.recommendations[0]["estimator"] == "aimle"
    found = library.diagnose(library.Argmax(), theta, spread, **settings)
    assert found.recommendations[0]["lambda"] == found.long_step is not None


def test_a_long_step_is_recommended_for_saturated_layers():
    torch.manual_seed(0)
    settings = {"nb_samples": 2, "repeats": 2, "warmup": 2, "estimators": ["imle", "aimle"]}
    theta, wanted = torch.arange(8.0).repeat(4, 1), torch.rand(4, 1, 8)

    def loss(z):
        return (z - wanted).square().sum(-1).sqrt()

    found = library.diagnose(library.TopK(3), 0.1 * theta, loss, **settings)
    assert (found.long_step, found.saturated) == (None, False)
    found = library.diagnose(library.TopK(3), 20 * theta, loss, **settings)
    assert found.saturated
    advice = found.recommendations[0]
    assert (advice["estimator"], advice["lambda"]) == ("imle", found.long_step)
    assert "scores are so large" in advice["reason"]
    assert found.document()["saturated"]
    found = library.diagnose(library.Argmax(), 20 * theta, loss, **settings)
    assert not found.saturated
    with pytest.raises(ValueError, match="noise changes no solution"):
        library.diagnose(library.TopK(3), 1e5 * theta, loss, **settings)


def test_a_layer_whose_solver_cannot_be_copied_is_diagnosed():
    class Solver:
        def __init__(self) -> None:
            self.handle = (value for value in ())  # generators cannot be copied

        def __call__(self, scores: torch.Tensor) -> torch.Tensor:
            return library.TopK(2)(scores)

    layer = library.AIMLE(Solver())
    settings = {"nb_samples": 2, "repeats": 2, "warmup": 2, "truth_samples": 200}
    found = library.diagnose(layer, torch.randn(2, 5), quartic, estimators=["ste"], **settings)
    assert {each["estimator"] for each in found.rows} == {"your layer", "ste"}


def square(z: torch.Tensor) -> torch.Tensor:
    target = torch.linspace(0, 1, z.shape[-1], dtype=z.dtype)
    return (z * target.flip(-1)).sum(-1) * (z * target).sum(-1) + (z - target).square().sum(-1)


@pytest.mark.parametrize("temperature", [0.3, 2.0])
def test_the_truth_has_the_temperature_of_the_layer(temperature: float):
    """Thresholds and ReinMax are unbiased for one of n under Gumbel noise and a quadratic loss."""
    torch.manual_seed(0)
    theta = temperature * torch.randn(1, 6)
    layer = library.Thresholds(library.Argmax(), temperature=temperature)
    names = ["thresholds", "reinmax", "imle"]
    settings = {"nb_samples": 500, "repeats": 20, "estimators": names, "lambdas": (temperature,)}
    found = library.diagnose(layer, theta, square, **settings)
    assert found.truth == "exact"
    rows = by_name(found.rows, 500)
    for name in ("your layer", "thresholds", "reinmax"):
        assert rows[name]["bias"] < 4 * (rows[name]["variance"] / 20) ** 0.5 + 1e-3, rows[name]
        assert rows[name]["norm_ratio"] == pytest.approx(1, abs=0.1)
    assert rows["imle"]["lambda"] == temperature
    # Everything but lambda is that of theta / temperature at temperature 1.
    torch.manual_seed(1)
    scaled = library.diagnose(
        library.Thresholds(library.Argmax()),
        theta / temperature,
        square,
        **settings | {"lambdas": (1.0,)},
    )
    other = by_name(scaled.rows, 500)["imle"]
    assert rows["imle"]["bias"] == pytest.approx(other["bias"], abs=0.1)


def test_the_truth_has_the_noise_of_the_layer():
    """A long run of the layer's own model, also for noise without a density."""
    torch.manual_seed(0)
    theta = torch.randn(2, 5)
    for noise, temperature in ((library.Normal(), 0.5), (library.Logistic(), 0.3)):
        layer = library.Thresholds(library.Argmax(), noise=noise, temperature=temperature)
        found = library.diagnose(
            layer, theta, square, nb_samples=500, estimators=["ste"], truth_samples=100_000
        )
        assert found.truth == "perturbation model, long run"
        row = by_name(found.rows, 500)["your layer"]
        error = (row["variance"] / 20 + found.truth_relative_se**2) ** 0.5
        assert row["bias"] < 4 * error
    grid = library.IMLE(library.GridPath(), noise=library.SumOfGamma(9), temperature=0.5)
    costs = torch.rand(1, 6, 6) + 1
    found = library.diagnose(
        grid, costs, spread, nb_samples=500, estimators=["imle_central"], lambdas=(0.3,)
    )
    assert by_name(found.rows, 500)["imle_central"]["cosine"] > 0.8


def test_it_says_what_it_wants():
    theta = torch.randn(2, 5)
    with pytest.raises(TypeError, match="layer_or_solver to be a layer such as aimle"):
        library.diagnose(torch.nn.Linear(2, 2), theta, quartic)
    with pytest.raises(ValueError, match=r"a loss for every sample"):
        library.diagnose(library.Argmax(), theta, lambda z: z.sum())
    with pytest.raises(ValueError, match="does not depend on the choice"):
        library.diagnose(library.Argmax(), theta, lambda z: 0 * z.sum(-1))
    with pytest.raises(ValueError, match=r"it is 1\.6 for all solutions"):
        library.diagnose(library.TopK(2), theta, lambda z: (0.3 * z.flip(-1) + 0.2).sum(-1))
    with pytest.raises(ValueError, match="repeats"):
        library.diagnose(library.Argmax(), theta, quartic, repeats=1)
    with pytest.raises(TypeError, match="applies to"):
        library.diagnose(library.TopK(2), theta, quartic, estimators=["reinmax"])
    with pytest.raises(TypeError, match="loss_fn to return a tensor but got NoneType"):
        library.diagnose(library.TopK(2), theta, lambda z: None)

    def blind(z):
        return quartic(z).detach()

    with pytest.raises(ValueError, match="differentiable in z"):
        library.diagnose(library.TopK(2), theta, blind, nb_samples=2, warmup=0)
    found = library.diagnose(library.TopK(2), theta, blind, nb_samples=2, estimators=["sfe"])
    assert {row["estimator"] for row in found.rows} == {"sfe"}
    assert {row["samples"] for row in found.rows} == {2}
