"""The public names as a user's type checker sees them: `mypy --strict` accepts this file.

No test runs it. An assignment with a type fails where the package promises another one; an ignored
error is one that must go on being reported, since an ignore that is not needed is an error too:
`not_a_number` sees that a result is not Any.
"""

from collections.abc import Callable

import torch
from torch import Generator, Size, Tensor, nn

import aimle
from aimle import AIMLE, DBB, IMLE, STE, AdaptiveTarget, FixedTarget, Identity, Thresholds, compat

theta = torch.randn(4, 8, requires_grad=True)
mask = torch.ones(8, dtype=torch.bool)


# Solvers.
solvers: list[aimle.Solver] = [
    aimle.Argmax(),
    aimle.TopK(k=3),
    aimle.SpanningTree(5),
    aimle.GridPath(neighbourhood=4, source=(0, 0), target=(-1, -1), negative="error"),
    aimle.Chain(length=12, labels=5),
    aimle.Bernoulli(),
    aimle.LatticePath(moves="diagonal"),
    aimle.LatticeMoves("straight"),
    aimle.GraphPath([(0, 1), (1, 2)], 0, 2, directed=False),
    aimle.DagPath(torch.tensor([[0, 1], [1, 2]]), 0, 2, num_vertices=5),
]
edges: Tensor = aimle.chain_scores(torch.randn(4, 12, 5), torch.randn(5, 5))
labels: Tensor = aimle.chain_labels(aimle.Chain()(edges, mask=aimle.chain_mask(torch.ones(4), 12)))
chosen: Tensor = aimle.TopK(3)(theta, mask=mask, k=2)
solved: Tensor = aimle.solve(aimle.TopK(3), theta, mask=mask, check=False)
with_status: tuple[Tensor, Tensor] = aimle.solve(aimle.Argmax(), theta, return_status=True)
number_of_entries: int = aimle.TopK(3).k
aimle.GridPath(negative="ignore")  # type: ignore[arg-type]
aimle.solve(aimle.TopK, theta)  # type: ignore[call-overload]


# Layers.
def own_solver(scores: Tensor, rounds: int = 1) -> Tensor:
    return (scores > 0).to(scores.dtype)


layer = AIMLE(
    aimle.TopK(k=3),
    noise=aimle.SumOfGamma(k=3, nb_iterations=10),
    nb_samples=5,
    symmetric_perturbation=False,
    target=AdaptiveTarget(target_norm=3.0, scale="noise", rule="multiplicative"),
    sense="max",
    output="flat",
    generator=Generator(),
)
z: Tensor = layer(theta, mask=mask, key=aimle.draw_key(theta))
not_a_number: float = layer(theta)  # type: ignore[assignment]
alpha: Tensor = layer.alpha
stats: dict[str, Tensor] = layer.stats()
layers: list[aimle.PerturbedMap] = [
    AIMLE(own_solver, noise="gumbel", target=AdaptiveTarget.reference(step=1e-2)),
    IMLE(aimle.Argmax(), 10.0, noise=None),
    IMLE(aimle.Argmax(), target=FixedTarget(10.0)),
    DBB(aimle.GridPath(), lambda_=2.0),
    STE(lambda scores: scores, noise=aimle.Normal()),
    Identity(aimle.TopK(2), projection=None),
    Thresholds(aimle.SpanningTree(5), order="first", noise=aimle.Logistic()),
    aimle.CovarianceAIMLE(aimle.TopK(2), share=0.3),
]
AIMLE(aimle.TopK(3), output="sample")  # type: ignore[arg-type]
AIMLE(aimle.TopK(3), n_samples=3)  # type: ignore[call-arg]
AIMLE(aimle.TopK(3), target_norm=3.0, scale="noise", temperature=0.5)
AIMLE(aimle.TopK(3), scale="noisy")  # type: ignore[arg-type]
STE(aimle.TopK(3), target_norm=3.0)  # type: ignore[call-arg]
aimle.SFE(aimle.TopK(3), nb_samples="3")  # type: ignore[arg-type]
aimle.GridPath(neighbours=4)  # type: ignore[call-arg]
aimle.Aimle(aimle.TopK(3))  # type: ignore[attr-defined]


# Estimators, exact quantities, noise.
named: IMLE = aimle.estimator("imle", aimle.TopK(3), lambda_=10.0, nb_samples=5)
of_named: Tensor = named(theta)
not_a_number = aimle.estimator("ste", aimle.TopK(3))(theta)  # type: ignore[assignment]
aimle.estimator("sfe", aimle.TopK(3)).surrogate(theta, chosen, chosen.sum(-1))


any_name: str = aimle.estimators()[0]
any_module: nn.Module = aimle.estimator(any_name, own_solver)
of_any: Tensor = aimle.estimator(any_name, aimle.TopK(3), nb_samples=2)(theta, mask=mask)
not_a_number = aimle.estimator(any_name, own_solver)(theta)  # type: ignore[assignment]
names: tuple[str, ...] = aimle.estimators()
sfe = aimle.SFE(aimle.TopK(3), baseline="leave_one_out", nb_samples=4)
samples: Tensor = sfe(theta)
with_gradient: Tensor = sfe.surrogate(theta, samples, samples.sum(-1))
soft = aimle.GumbelSoftmax(aimle.Argmax(), temperature=aimle.anneal(100), hard=True)
relaxed: Tensor = soft(theta)
not_a_number = soft(theta)  # type: ignore[assignment]
others: list[nn.Module] = [
    aimle.SoftSub(aimle.TopK(3)),
    aimle.SST(aimle.SpanningTree(5)),
    aimle.L2X(aimle.TopK(3)),
    aimle.ExactMarginals(aimle.TopK(3)),
    aimle.ReinMax(aimle.Argmax()),
]
mean: Tensor = aimle.DPO(own_solver, noise="normal", variance_reduction="none")(theta)
loss: Tensor = aimle.perturbed_fenchel_young_loss(theta, solved, aimle.TopK(3), nb_samples=2)
spo_plus: Tensor = aimle.spo_plus_loss(theta, theta, aimle.TopK(3), solution=solved)
marginals: Tensor = aimle.exact.marginals(aimle.TopK(3), theta, mask=mask)
gradient: Tensor = aimle.exact.exact_gradient(aimle.TopK(3), theta, lambda z: z.sum(-1))
noise: Tensor = aimle.sample_noise("gumbel", theta.shape, aimle.draw_key(theta), nb_samples=3)
symmetric: Tensor = aimle.symmetrise(torch.randn(2, 20), n=5)
found: aimle.Diagnosis = aimle.diagnose(layer, theta, lambda z: z[..., 0], nb_samples=[1])
status: aimle.Status = aimle.Status.OK


# The authors' interface: a function, a decorator, a decorator with settings.
adaptive = compat.AdaptiveTargetDistribution(initial_beta=0.0)
sum_of_gamma = compat.SumOfGammaNoiseDistribution(k=3)


@compat.aimle(target_distribution=adaptive, noise_distribution=sum_of_gamma, nb_samples=10)
def choose(weights: Tensor, k: int = 3) -> Tensor:
    return compat.select_k(weights, k)


@compat.ste
def choose_straight(weights: Tensor) -> Tensor:
    return compat.mathias_select_k(weights, 3)


decorated: Tensor = choose(theta, k=2)
not_a_number = choose(theta)  # type: ignore[assignment]
not_a_number = choose_straight(theta)  # type: ignore[assignment]
straight: Tensor = choose_straight(theta)
wrapped: Callable[[Tensor], Tensor] = compat.imle(choose_straight, nb_samples=3)
behind: aimle.PerturbedMap = aimle.compat.imle(own_solver, adaptive, sum_of_gamma, 3).layer
choose(theta, k="two")  # type: ignore[arg-type]
compat.aimle(own_solver, nb_sample=3)  # type: ignore[call-overload]


class OwnTarget(compat.BaseTargetDistribution):
    def params(self, theta: Tensor, dy: Tensor | None, _is_minimization: bool = False) -> Tensor:
        return theta if dy is None else theta - dy

    def process(self, theta: Tensor, dy: Tensor, gradient_3d: Tensor) -> Tensor:
        return gradient_3d


class OwnNoise(compat.BaseNoiseDistribution):
    def sample(self, shape: Size) -> Tensor:
        return torch.randn(shape)


own = compat.aimle(own_solver, OwnTarget(), OwnNoise(), symmetric_perturbation=True)
from_own: Tensor = own(theta, rounds=2)
