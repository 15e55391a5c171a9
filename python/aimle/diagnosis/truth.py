"""The true gradients of a diagnosis, and how they are computed (aimle.diagnosis)."""

import contextlib
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

import aimle
from aimle import exact
from aimle.estimate.perturbed import Instances, signed
from aimle.noise import Gumbel, Logistic, Noise, Normal, SumOfGamma
from aimle.settings.checks import instance_dims_of
from aimle.settings.defaults import noise_for, temperature_for, varies
from aimle.solvers import Solver

FEWEST_SAMPLES = 200  # of a long run
_FEW = 20_000  # largest number of structures to be listed
_BLOCKS = 20  # of a long run
# Noise values drawn at once: the memory does not grow with the length of the run.
_MOST_NUMBERS = 1 << 23
# Numbers per block below which threads cost more than they save: they busy-wait at the end of every
# short operation, which on a machine with other work took five times as long as the work itself.
_FEW_NUMBERS = 2_000_000

Loss = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Model:
    """MAP(theta + temperature * noise); noise None: each estimator's default."""

    noise: Noise | None = None
    temperature: float = 1.0

    def is_exponential(self, solver: object) -> bool:
        """Whether p(z) ~ exp<theta / temperature, z> represents this model."""
        if getattr(solver, "default_noise", None) == "logistic":
            return isinstance(self.noise, Logistic | None)
        return isinstance(self.noise, Gumbel | SumOfGamma | None)

    def with_density(self) -> tuple[Noise, float]:
        """A noise with a known score, and its temperature: its own, or Normal of equal scale."""
        if self.noise is None:
            return Gumbel(), self.temperature
        if isinstance(self.noise, Gumbel | Normal | Logistic):
            return self.noise, self.temperature
        return Normal(), self.temperature * self.noise.stddev


def model_of(layer: nn.Module | None, solver: object) -> Model:
    """The layer's noise model; for a layer without noise, the solver's default."""
    noise = getattr(layer, "noise", None)
    temperature = float(getattr(layer, "theta_noise_temperature", 0.0))
    if isinstance(layer, aimle.DPO):
        temperature = layer.temperature
    if not isinstance(noise, Noise) or not temperature > 0:
        own = noise_for(solver, None, "auto") if varies(solver, None) else None
        return Model(own, temperature_for(solver, None, None))
    return Model(noise, temperature)


def estimate_gradient(layer: nn.Module, theta: Tensor, loss: Loss) -> tuple[Tensor, int]:
    """A gradient estimate, averaged over samples, and the number of samples."""
    theta = theta.clone().requires_grad_()
    z = layer(theta)
    losses = loss(z)
    surrogate = getattr(layer, "surrogate", None)
    total = losses if surrogate is None else surrogate(theta, z, losses)
    count = losses.shape[-1]
    (gradient,) = torch.autograd.grad(total.sum(), theta, allow_unused=True)
    return (torch.zeros_like(theta) if gradient is None else gradient / count), count


def _count(solver: object, theta: Tensor) -> float:
    """The number of structures; infinite if it is not known to be small."""
    if not isinstance(solver, Solver) or not solver.lists or solver.takes_data:
        return math.inf
    instance = theta.shape[theta.dim() - solver.instance_dims :]
    return torch.ops.aimle.structure_count.default(solver.text, instance)


def find_truth(
    solver, model: Model, theta: Tensor, loss: Loss, samples: int, price: Tensor | None = None
):
    """Returns (gradient in float64, how it was found, its relative standard error).

    price: of a loss that is linear on zeros and ones (aimle.diagnosis.losses), otherwise None.
    """
    tau = model.temperature
    is_exponential = model.is_exponential(solver)
    if price is not None and is_exponential and getattr(solver, "has_exact", False):
        gradient = _closed_form(solver, theta.double() / tau, price.double())
        return gradient / tau, "exact", 0.0
    count = _count(solver, theta) if is_exponential else math.inf
    if count * theta.numel() <= _FEW * 100 and count <= _FEW:
        dims = solver.instance_dims
        batch = theta.shape[: theta.dim() - dims]

        def listed(z: Tensor) -> Tensor:
            every = z.to(theta.dtype).expand(*batch, *z.shape)
            return loss(every).double()

        return exact.exact_gradient(solver, theta.double() / tau, listed) / tau, "exact", 0.0
    share = samples // _BLOCKS
    with _one_thread(theta.device.type == "cpu" and share * theta.numel() <= _FEW_NUMBERS):
        return _long_run(solver, model, theta, loss, share)


def _closed_form(solver: Solver, theta: Tensor, price: Tensor) -> Tensor:
    """The gradient of <price, E z>."""
    theta = theta.detach().requires_grad_()
    (gradient,) = torch.autograd.grad((exact.marginals(solver, theta) * price).sum(), theta)
    return gradient


@contextlib.contextmanager
def _one_thread(wanted: bool) -> Iterator[None]:
    """Context manager: limits PyTorch to one thread."""
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if wanted:
            torch.set_num_threads(before)


def _long_run(solver, model: Model, theta: Tensor, loss: Loss, share: int):
    """The result of find_truth from _BLOCKS blocks of this many samples."""
    tau = model.temperature
    if model.is_exponential(solver) and getattr(solver, "has_exact", False):

        def score_function(samples: int) -> Tensor:
            settings = {"baseline": "leave_one_out", "nb_samples": samples}
            layer = aimle.estimator("sfe", solver, **settings)
            return estimate_gradient(layer, theta / tau, loss)[0].double() / tau

        return _average(_blocks(score_function, share, theta.numel()), "score function, long run")
    noise, tau = model.with_density()

    def perturbation_model(samples: int) -> Tensor:
        return _model_gradient(solver, noise, tau, theta, loss, samples)

    blocks = _blocks(perturbation_model, share, theta.numel())
    return _average(blocks, "perturbation model, long run")


def _blocks(estimate: Callable[[int], Tensor], share: int, numbers: int) -> list[Tensor]:
    """_BLOCKS estimates from about `share` samples of `numbers` values each, split if large."""
    parts = max(1, share // max(2, _MOST_NUMBERS // numbers))

    def block() -> Tensor:
        total = estimate(share // parts)
        for _ in range(parts - 1):
            total += estimate(share // parts)
        return total / parts

    return [block() for _ in range(_BLOCKS)]


def _average(blocks: list[Tensor], about: str) -> tuple[Tensor, str, float]:
    all_ = torch.stack(blocks)
    mean = all_.mean(0)
    error = float((all_.var(0).sum() / len(blocks)).sqrt() / mean.norm())
    return mean, about, error


def _model_gradient(solver, noise, tau: float, theta: Tensor, loss: Loss, samples: int) -> Tensor:
    """mean_s (f_s - mean of the others) nu'(eps_s) / tau: unbiased for any solver and loss."""
    sense: Literal["max", "min"] = getattr(solver, "sense", "max")
    dims = instance_dims_of(solver, theta)
    key = aimle.draw_key(theta)
    tau = signed(tau, sense)
    instances = Instances(solver, sense, dims, owner="diagnose")
    eps, z = instances.perturbed(noise, tau, samples, theta, key)
    place = theta.dim() - dims
    losses = loss(z.movedim(0, place)).detach().movedim(-1, 0)
    centred = (losses - losses.mean(0)) * (1.0 / (tau * (samples - 1)))
    weights = centred.reshape(samples, -1, 1)
    # The weights sum to zero, so a constant in the score, such as Gumbel's 1, does not matter.
    if isinstance(noise, Gumbel):
        score = eps.neg_().exp_().neg_()
    else:
        score = torch.ops.aimle.noise_score.default(eps, noise.name)
    score = score.reshape(*weights.shape[:2], -1)
    # A sum over samples for each example, without a temporary of the size of the noise.
    total = torch.einsum("sbo,sbn->bn", weights.to(score.dtype), score)
    return total.double().reshape(theta.shape)
