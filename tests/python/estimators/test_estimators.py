"""The estimators by name: structures, shapes, and gradients against exact ones.

Unbiased ones must meet the exact gradient within the standard error; test_biased_estimators.py has
the others.
"""

import math

import pytest
import torch
from exact_gradients import (
    DAG,
    WEIGHTS,
    assert_unbiased,
    chains,
    curved,
    exact_gradient,
    exponential_family,
    flips,
    linear,
    paths,
    perturbed_gradient,
    quadratic,
    replicate,
    scores,
    sets,
    subsets,
    trees,
)
from torch import Tensor

import aimle

KEY = torch.tensor([7, 11])
ARGMAX_ONLY = ("gumbel_softmax", "gumbel_rao", "reinmax")
TOPK_ONLY = ("softsub", "l2x")
ANY_SOLVER = (
    *("aimle", "aimle_forward", "aimle_noise", "aimle_covariance", "imle", "imle_central"),
    *("ste", "dbb", "identity", "dpo"),
)
# Those that take part in neither list above.
EXACT = ("sfe", "sst", "exact")
SOFT = ("gumbel_softmax", "softsub", "sst", "l2x", "dpo")


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


def solver_for(name: str) -> aimle.Solver:
    return aimle.TopK(2) if name in TOPK_ONLY else aimle.Argmax()


def test_the_names_are_known():
    named = {*ARGMAX_ONLY, *TOPK_ONLY, *ANY_SOLVER, *EXACT, "thresholds"}
    assert set(aimle.estimators()) == named


@pytest.mark.parametrize("name", aimle.estimators())
def test_shapes_masks_keys_and_modes_are_those_of_the_layers(name: str):
    solver = solver_for(name)
    mean = name in ("dpo", "dbb", "identity")
    settings = {} if mean else {"nb_samples": 3}
    layer = aimle.estimator(name, solver, **settings)
    theta = torch.randn(2, 4, 6, requires_grad=True)
    mask = torch.arange(6) < 5
    z = layer(theta, mask=mask, key=KEY)
    assert z.shape == ((2, 4, 6) if mean else (2, 4, 3, 6))
    assert torch.equal(z, layer(theta, mask=mask, key=KEY))
    assert (z[..., 5] == 0).all()
    if name not in SOFT:
        assert set(z.unique().tolist()) == {0.0, 1.0}
    losses = (z * torch.randn(6)).sum(-1)
    if hasattr(layer, "surrogate"):
        extra = {"mask": mask} if name == "sfe" else {}
        losses = layer.surrogate(theta, z, losses, **extra)
    losses.sum().backward()
    assert theta.grad.isfinite().all()
    assert (theta.grad[..., 5] == 0).all()
    if name not in ("sfe", "aimle_covariance", "dpo", "dbb", "identity"):
        for output, shape in (("flat", (24, 6)), ("mean", (2, 4, 6))):
            shaped = aimle.estimator(name, solver, nb_samples=3, output=output)(
                theta, mask=mask, key=KEY
            )
            assert shaped.shape == shape
            expected = z.reshape(24, 6) if output == "flat" else z.mean(-2)
            torch.testing.assert_close(shaped, expected)
    layer.eval()
    best = solver(theta.detach(), mask=mask)
    got = layer(theta, mask=mask)
    assert torch.equal(got, best if mean else best.unsqueeze(-2))


@pytest.mark.parametrize("name", aimle.estimators())
def test_a_nan_reaches_z_and_the_gradient_of_its_own_row(name: str):
    layer = aimle.estimator(name, solver_for(name))
    theta = torch.randn(3, 6)
    theta[1, 2] = math.nan
    theta.requires_grad_()
    z = layer(theta, key=KEY)
    losses = z.square().sum(-1)
    if hasattr(layer, "surrogate"):
        losses = layer.surrogate(theta, z, losses)
    losses.sum().backward()
    for found in (z.reshape(3, -1), theta.grad):
        assert found[[0, 2]].isfinite().all()
        assert found[1].isnan().sum() >= 5  # the entry itself may have a gradient of zero


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", [name for name in aimle.estimators() if name != "identity"])
def test_few_bits_are_computed_in_float32(name: str, dtype: torch.dtype):
    """Rounding the noise would make ties, and the lower index more likely."""
    settings = {} if name == "dbb" else {"nb_samples": 5}
    theta, results = torch.randn(40, 6).to(dtype), []
    for given in (dtype, torch.float32):
        x = theta.to(given, copy=True).requires_grad_()
        z = aimle.estimator(name, solver_for(name), **settings)(x, key=KEY)
        if z.requires_grad:
            z.backward(torch.ones_like(z).cumsum(-1))
        results.append((z, torch.zeros_like(x) if x.grad is None else x.grad))
    assert torch.equal(results[0][0], results[1][0].to(dtype))
    torch.testing.assert_close(results[0][1], results[1][1].to(dtype), rtol=2e-2, atol=1e-2)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_the_fenchel_young_loss_of_few_bits_is_computed_in_float32(dtype: torch.dtype):
    theta, target = torch.randn(40, 6).to(dtype), aimle.TopK(2)(torch.randn(40, 6))
    results = []
    for given in (dtype, torch.float32):
        x = theta.to(given, copy=True).requires_grad_()
        loss = aimle.perturbed_fenchel_young_loss(x, target.to(given), aimle.TopK(2), key=KEY)
        loss.sum().backward()
        results.append((loss, x.grad))
    assert torch.equal(results[0][0], results[1][0].to(dtype))
    assert torch.equal(results[0][1], results[1][1].to(dtype))


def test_structures_to_which_an_estimator_does_not_apply_are_refused_by_name():
    grid = aimle.GridPath()
    for name, wrong, allowed in (
        ("gumbel_softmax", aimle.TopK(2), "Argmax"),
        ("reinmax", grid, "Argmax"),
        ("gumbel_rao", aimle.TopK(1), "Argmax"),
        ("softsub", aimle.Argmax(), "TopK"),
        ("l2x", aimle.SpanningTree(3), "TopK"),
        ("sfe", grid, "Argmax, TopK and SpanningTree"),
        ("sst", lambda x: x, "Argmax, TopK and SpanningTree"),
        ("exact", grid, "Argmax, TopK and SpanningTree"),
    ):
        with pytest.raises(
            TypeError, match=f"applies to .*{allowed}.* but got {type(wrong).__name__}"
        ):
            aimle.estimator(name, wrong)


def test_settings_out_of_range_are_refused():
    for name, settings, message in (
        ("gumbel_softmax", {"temperature": 0.0}, "temperature > 0 but got 0"),
        ("gumbel_rao", {"draws": 0}, "draws >= 1"),
        ("softsub", {"nb_samples": 0}, "nb_samples >= 1"),
        ("sfe", {"baseline": "mean"}, "baseline to be 'none' or 'leave_one_out'"),
        ("sfe", {"baseline": "leave_one_out"}, "nb_samples >= 2"),
        ("sfe", {"output": "mean"}, "the loss of every sample"),
        ("aimle_covariance", {"output": "mean"}, "the loss of every sample"),
        ("aimle_covariance", {"share": 2.0}, "0 <= share <= 1 but got 2"),
        ("aimle_covariance", {"nb_samples": 1}, "nb_samples >= 2"),
        ("aimle_covariance", {"noise": None}, "needs noise"),
        ("dpo", {"noise": aimle.SumOfGamma(3)}, "density in closed form"),
        ("dpo", {"nb_samples": 1}, "nb_samples >= 2"),
        ("dpo", {"output": "samples"}, "output to be 'mean'"),
        ("dpo", {"temperature": -1.0}, "temperature > 0"),
    ):
        with pytest.raises(ValueError, match=message):
            aimle.estimator(name, solver_for(name), **settings)


@pytest.mark.parametrize("name", ["sfe", "aimle_covariance"])
@pytest.mark.parametrize("output", ["samples", "flat"])
def test_bad_arguments_of_a_surrogate_are_named(name: str, output: str):
    layer = aimle.estimator(name, aimle.Argmax(), nb_samples=2, output=output)
    theta = torch.zeros(3, 4)
    z = layer(theta)
    with pytest.raises(ValueError, match="a loss for every sample"):
        layer.surrogate(theta, z, torch.zeros(3))
    with pytest.raises(TypeError, match=r"\[aimle\..*losses to be a tensor but got float"):
        layer.surrogate(theta, z, 1.0)
    with pytest.raises(TypeError, match=r"\[aimle\..*z to be a tensor but got ndarray"):
        layer.surrogate(theta, z.numpy(), z.sum(-1))
    swapped = (z, theta.clone().requires_grad_())
    for bad in (swapped, (theta, z[..., :3]), (theta, z[:2]), (theta, z[None, None])):
        with pytest.raises(ValueError, match=r"surrogate\(theta, z, losses\) with z \[.*shape"):
            layer.surrogate(*bad, z.sum(-1))


@pytest.mark.parametrize("name", aimle.estimators())
def test_bad_arguments_of_a_call_are_named(name: str):
    """By every estimator alike; the layers' own messages are tested beside them."""
    layer, theta = aimle.estimator(name, solver_for(name)), torch.randn(3, 6)
    mask = torch.ones(3, 6, dtype=torch.bool)
    for call, error, message in (
        ({"mask": mask.float()}, TypeError, "mask of bool but got (torch.)?float32"),
        ({"mask": [True] * 6}, TypeError, "mask to be a tensor but got list"),
        ({"mask": mask[:2]}, ValueError, r"broadcastable to the shape of .*\[3, 6\].*\[2, 6\]"),
        ({"mask": ~mask}, ValueError, "row .*0.* expected at least"),
        ({"key": 3}, TypeError, "key to be a tensor but got int"),
        ({"key": torch.rand(2)}, TypeError, "key of (type )?int64 but got float32"),
    ):
        with pytest.raises(error, match=message):
            layer(theta, **call)
    with pytest.raises(ValueError, match="at least 1 dimension"):
        layer(torch.tensor(1.0))


@pytest.mark.parametrize("name", ["softsub", "l2x", "sst"])
def test_relaxations_refuse_more_entries_than_there_are(name: str):
    with pytest.raises(ValueError, match="k=7"):
        aimle.estimator(name, aimle.TopK(7))(torch.randn(3, 6))
    layer = aimle.estimator(name, aimle.TopK(2))
    with pytest.raises(ValueError, match="at least k=2 entries"):
        layer(torch.randn(3, 6), mask=torch.arange(6) < 1)
    with pytest.raises(TypeError, match="int64"):
        layer(torch.randn(3, 6), k=torch.ones(3))


def test_settings_of_a_target_may_be_given_directly():
    layer = aimle.estimator("aimle", aimle.TopK(2), target_norm=3.0, nb_samples=4)
    assert layer.target == aimle.AdaptiveTarget(target_norm=3.0)
    assert layer.difference == "central"
    assert layer.nb_samples == 4
    layer = aimle.estimator("aimle_noise", aimle.TopK(2), target_norm=3.0)
    assert (layer.target.scale, layer.target.rule) == ("noise", "multiplicative")
    assert aimle.estimator("aimle_forward", aimle.TopK(2)).difference == "forward"
    layer = aimle.estimator("imle", aimle.TopK(2), lambda_=7.0)
    assert layer.target == aimle.FixedTarget(7.0)
    assert layer.difference == "forward"
    assert aimle.estimator("imle_central", aimle.TopK(2)).difference == "central"
    with pytest.raises(TypeError, match="lambda_ or target but got both"):
        aimle.estimator("imle", aimle.TopK(2), lambda_=7.0, target=aimle.FixedTarget(1.0))
    with pytest.raises(TypeError, match="give target_norm to the target"):
        aimle.estimator("aimle", aimle.TopK(2), target_norm=7.0, target=aimle.AdaptiveTarget())


def test_unknown_names_suggest_the_nearest():
    for name, near in (("aimel", "aimle"), ("IMLE", "imle"), ("imle-central", "imle_central")):
        with pytest.raises(ValueError, match=f"did you mean '{near}'"):
            aimle.estimator(name, aimle.Argmax())
    with pytest.raises(ValueError, match=r"expected one of aimle, .* but got 'qqq'$"):
        aimle.estimator("qqq", aimle.Argmax())
    with pytest.raises(TypeError, match="name of an estimator"):
        aimle.estimator(aimle.Argmax(), "aimle")


# ---- Unbiased ones -------------------------------------------------------------------------------


FAMILIES = {
    "argmax": (aimle.Argmax(), subsets(6, 1)),
    "topk": (aimle.TopK(2), subsets(6, 2)),
    "tree": (aimle.SpanningTree(4), trees(4)),
    "chain": (aimle.Chain(), chains(2, 2)),
    "bernoulli": (aimle.Bernoulli(), flips(6)),
    "dag": (aimle.DagPath(DAG, 0, 3), paths()),
    "knapsack": (aimle.Knapsack(WEIGHTS, 6), sets(6)),
}


def size_of(family: str) -> int:
    """The number of scores."""
    return FAMILIES[family][1].shape[1]


def family_gradient(family: str, theta: Tensor, loss) -> Tensor:
    """Of E f(z) under the exponential family over all structures."""
    structures = FAMILIES[family][1]
    return exact_gradient(theta, structures, lambda at: exponential_family(at, structures), loss)


@pytest.mark.parametrize("baseline", ["none", "leave_one_out"])
@pytest.mark.parametrize("family", FAMILIES)
def test_the_score_function_is_unbiased_for_any_loss(family: str, baseline: str):
    theta, loss = scores(size_of(family)), curved(size_of(family))
    layer = aimle.estimator("sfe", FAMILIES[family][0], nb_samples=100, baseline=baseline)
    assert_unbiased(replicate(layer, theta, loss), family_gradient(family, theta, loss))


def test_leaving_one_out_shrinks_the_variance_of_the_score_function():
    theta, loss = scores(5), quadratic(5)
    shifted = lambda z: loss(z) + 5.0  # noqa: E731
    spread = [
        replicate(aimle.SFE(aimle.TopK(2), nb_samples=10, baseline=name), theta, shifted)
        .var(0)
        .sum()
        for name in ("none", "leave_one_out")
    ]
    assert spread[1] < 0.5 * spread[0]


def test_reinmax_is_unbiased_for_quadratic_losses():
    theta, loss = scores(6), quadratic(6)
    layer = aimle.estimator("reinmax", aimle.Argmax(), nb_samples=100)
    assert_unbiased(replicate(layer, theta, loss), family_gradient("argmax", theta, loss))


def test_the_covariance_is_unbiased_for_argmax_under_gumbel_noise():
    theta, loss = scores(6), curved(6)
    layer = aimle.estimator("aimle_covariance", aimle.Argmax(), nb_samples=100, share=1.0)
    assert_unbiased(replicate(layer, theta, loss), family_gradient("argmax", theta, loss))


def test_the_covariance_is_unbiased_for_entries_on_or_off_under_logistic_noise():
    theta, loss = scores(6), curved(6)
    layer = aimle.estimator("aimle_covariance", aimle.Bernoulli(), nb_samples=100, share=1.0)
    assert layer.noise == aimle.Logistic()
    assert_unbiased(replicate(layer, theta, loss), family_gradient("bernoulli", theta, loss))


def test_perturbed_optimisers_of_entries_on_or_off_are_unbiased_under_logistic_noise():
    theta, loss = scores(6), linear(6)
    layer = aimle.estimator("dpo", aimle.Bernoulli(), noise="logistic", nb_samples=100)
    assert_unbiased(replicate(layer, theta, loss), family_gradient("bernoulli", theta, loss))


def test_the_covariance_is_a_part_of_the_whole():
    theta, loss = scores(5), curved(5)

    def gradients(share: float, **settings) -> Tensor:
        layer = aimle.estimator(
            "aimle_covariance",
            aimle.TopK(2),
            nb_samples=5,
            share=share,
            initial_alpha=1.0,
            **settings,
        )
        return replicate(layer, theta, loss, replicas=20)

    alone = aimle.estimator("aimle", aimle.TopK(2), nb_samples=5, initial_alpha=1.0)
    none, half, full = (gradients(share) for share in (0.0, 0.5, 1.0))
    torch.testing.assert_close(none, replicate(alone, theta, loss, replicas=20))
    torch.testing.assert_close(half, (none + full) / 2, rtol=1e-4, atol=1e-6)
    assert not torch.allclose(full, none)


@pytest.mark.parametrize("output", ["samples", "flat"])
@pytest.mark.parametrize("name", ["sfe", "aimle_covariance"])
def test_a_surrogate_takes_an_empty_batch(name: str, output: str):
    layer = aimle.estimator(name, aimle.TopK(2), nb_samples=3, output=output)
    theta = torch.zeros(0, 6, requires_grad=True)
    z = layer(theta)
    losses = layer.surrogate(theta, z, z.sum(-1))
    assert losses.shape == z.shape[:-1]
    losses.sum().backward()
    assert theta.grad.shape == (0, 6)


def test_the_jacobian_of_exact_marginals_is_exact_for_linear_losses():
    for family, (solver, _) in FAMILIES.items():
        theta, loss = scores(size_of(family)), linear(size_of(family))
        layer = aimle.estimator("exact", solver, nb_samples=2)
        got = replicate(layer, theta.double(), loss, replicas=4)
        torch.testing.assert_close(got, family_gradient(family, theta, loss).expand(4, -1))


@pytest.mark.parametrize("reduction", ["none", "leave_one_out"])
@pytest.mark.parametrize("noise", ["normal", "gumbel", "logistic"])
def test_perturbed_optimisers_have_the_jacobian_of_the_mean_solution(noise: str, reduction: str):
    theta, loss = scores(5), linear(5)
    settings = {"noise": noise, "nb_samples": 100, "variance_reduction": reduction}
    for structure, solver, tau in (("argmax", aimle.Argmax(), 1.0), ("topk", aimle.TopK(2), 0.5)):
        layer = aimle.estimator("dpo", solver, temperature=tau, **settings)
        exact = perturbed_gradient(structure, theta, noise, tau, loss)
        assert_unbiased(replicate(layer, theta, loss), exact)


def test_leaving_one_out_shrinks_the_variance_of_perturbed_optimisers():
    theta, loss = scores(5), linear(5)
    spread = [
        replicate(aimle.DPO(aimle.TopK(2), variance_reduction=name), theta, loss).var(0).sum()
        for name in ("none", "leave_one_out")
    ]
    assert spread[1] < 0.7 * spread[0]


def test_perturbed_optimisers_take_any_solver_and_sense():
    theta, d = torch.rand(3, 4, 5) + 0.5, torch.randn(3, 4, 5)

    def run(solver, theta: Tensor, **settings) -> tuple[Tensor, Tensor]:
        theta = theta.clone().requires_grad_()
        z = aimle.DPO(solver, **settings)(theta, key=KEY)
        (z * d).sum().backward()
        return z.detach(), theta.grad

    path = aimle.GridPath()
    z, gradient = run(path, theta)
    expected = run(lambda costs: path(costs), theta, sense="min")
    torch.testing.assert_close((z, gradient), expected)
    # A minimiser of theta is a maximiser of -theta.
    z, gradient = run(aimle.TopK(2), theta[0])
    flipped = run(aimle.TopK(2), -theta[0], sense="min")
    torch.testing.assert_close((z, -gradient), flipped)


def test_the_fenchel_young_loss_and_its_gradient():
    theta = scores(5).double().expand(2000, 5).clone().requires_grad_()
    mean = torch.softmax(scores(5).double(), -1)
    target = mean.expand_as(theta)
    settings = {"noise": "gumbel", "nb_samples": 10, "temperature": 0.5}
    losses = aimle.perturbed_fenchel_young_loss(theta, target, aimle.Argmax(), key=KEY, **settings)
    assert losses.shape == (2000,)
    # E max (theta + tau G) = tau (logsumexp(theta / tau) + Euler's constant)
    x = scores(5).double() / 0.5
    euler = 0.57721566
    expected = 0.5 * (torch.logsumexp(x, -1) + euler) - scores(5).double() @ mean
    assert (losses.mean() - expected).abs() < 5 * losses.std() / math.sqrt(2000)
    losses.sum().backward()
    assert_unbiased(theta.grad, torch.softmax(x, -1) - mean)
    one = aimle.perturbed_fenchel_young_loss(
        -theta.detach(), target, aimle.Argmax(), sense="min", key=KEY, **settings
    )
    torch.testing.assert_close(one, losses.detach())
    with pytest.raises(ValueError, match=r"target of the shape of theta, \[4, 4\], but got \[4\]"):
        aimle.perturbed_fenchel_young_loss(torch.zeros(4, 4), torch.arange(4), aimle.Argmax())


@pytest.mark.parametrize("negative", ["clip", "none"])
def test_the_fenchel_young_gradient_is_the_slope_of_its_value(negative: str):
    """Also where noise pushes costs below zero, which GridPath takes as zero."""
    torch.manual_seed(0)
    solver = aimle.GridPath() if negative == "clip" else aimle.SpanningTree(5)
    theta = torch.rand(1, 3, 3).double() + 0.2 if negative == "clip" else torch.rand(1, 10).double()
    target = solver(torch.rand_like(theta))
    temperature = 1.0
    settings = {"nb_samples": 20_000, "temperature": temperature, "key": KEY}

    def loss(theta: Tensor) -> Tensor:
        return aimle.perturbed_fenchel_young_loss(theta, target, solver, **settings).sum()

    leaf = theta.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(leaf), leaf)
    step = 1e-3
    for j in range(theta[0].numel()):
        move = torch.zeros_like(theta)
        move.view(-1)[j] = step
        slope = (loss(theta + move) - loss(theta - move)) / (2 * step)
        # Solutions that change within the step: a share of 2 step / temperature of the samples.
        assert slope.item() == pytest.approx(gradient.view(-1)[j].item(), abs=3e-3)


def test_the_fenchel_young_loss_names_a_bad_key():
    theta = torch.zeros(2, 3)
    with pytest.raises(TypeError, match="key to be a tensor but got list"):
        aimle.perturbed_fenchel_young_loss(theta, theta, aimle.Argmax(), key=[1, 2])


@pytest.mark.parametrize("name", EXACT)
def test_estimators_name_an_instance_with_too_few_dimensions(name: str):
    layer = aimle.estimator(name, aimle.Chain())
    with pytest.raises(ValueError, match=r"theta of at least 3 dimensions but got shape \[4, 4\]"):
        layer(torch.zeros(4, 4))


def test_the_fenchel_young_loss_is_lowest_at_its_target():
    """Training from costs that noise clips finds the costs of the target path."""
    torch.manual_seed(0)
    solver = aimle.GridPath()
    detour = torch.ones(1, 4, 4)
    detour[0, :, 0] = detour[0, 3] = 0.01
    target = solver(detour)
    assert target.sum() > solver(torch.ones(1, 4, 4)).sum()
    raw = torch.zeros(1, 4, 4, requires_grad=True)
    optimiser = torch.optim.Adam([raw], lr=0.1)
    for _ in range(150):
        costs = torch.nn.functional.softplus(raw)
        loss = aimle.perturbed_fenchel_young_loss(
            costs, target, solver, nb_samples=8, temperature=0.5
        )
        optimiser.zero_grad()
        loss.sum().backward()
        optimiser.step()
    assert torch.equal(solver(torch.nn.functional.softplus(raw)), target)


def test_perturbed_optimisers_refuse_grid_paths_of_scores():
    for call in (
        lambda: aimle.DPO(aimle.GridPath(), sense="max"),
        lambda: aimle.perturbed_fenchel_young_loss(
            torch.zeros(1, 3, 3), torch.zeros(1, 3, 3), aimle.GridPath(), sense="max"
        ),
    ):
        with pytest.raises(ValueError, match=r"expected sense='min' for GridPath.*leave out sense"):
            call()


@pytest.mark.parametrize("cls", [aimle.DPO, aimle.CovarianceAIMLE])
def test_settings_assigned_later_are_checked(cls: type):
    theta = torch.randn(2, 6)
    layer = cls(aimle.TopK(2), nb_samples=4)
    layer.nb_samples = 1
    with pytest.raises(ValueError, match="nb_samples >= 2 but got"):
        layer(theta)
    layer.nb_samples, layer.temperature = 4, 0.0
    with pytest.raises(ValueError, match=r"temperature > 0 but got 0\.0|needs noise"):
        layer(theta)


# ---- torch.compile -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*ARGMAX_ONLY, *TOPK_ONLY, *EXACT, "dpo", "aimle_covariance"])
def test_compiled_estimators_equal_eager_ones(name: str):
    layer = aimle.estimator(name, solver_for(name), nb_samples=3)
    d = torch.randn(6)

    def step(theta: Tensor) -> Tensor:
        z = layer(theta, key=KEY)
        losses = (z**2 * d).sum(-1)
        if name in ("sfe", "aimle_covariance"):
            losses = layer.surrogate(theta, z, losses)
        return losses

    def gradient(function) -> Tensor:
        theta = scores(12).reshape(2, 6).requires_grad_()
        function(theta).sum().backward()
        return theta.grad

    expected = gradient(step)
    torch._dynamo.reset()
    compiled = torch.compile(step, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(gradient(compiled), expected)
