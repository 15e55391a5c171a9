"""The layers as docs/guide/math.md writes them down: one example, one sample and one formula after
the other, in NumPy. Solutions are found in lists of all structures (listed_structures.py); only the
noise is the library's."""

import math
from dataclasses import dataclass, field

import numpy as np
from listed_structures import Listed
from torch import Tensor

import aimle


class AmbiguousError(Exception):
    """Rounding decides between two solutions."""


@dataclass
class LayerModel:
    """A layer's settings and state. Rows are [B, n], samples [B, S, n], of float32 or float64."""

    listed: Listed
    layer: aimle.PerturbedMap
    alpha: float = 0.0
    gbar: float = 0.0
    updates: int = 0
    reach: float = 0.0
    velocity: float = 0.0
    stats: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        target = self.layer.target
        if not isinstance(target, aimle.AdaptiveTarget):
            return
        long = self.layer.difference == "forward" and self.listed.solver.has_costs
        self.low, self.high = target.alpha_range or (1e-6, 16.0 if long else 4.0)
        highest = self.low if math.isinf(self.high) else self.high
        self.alpha = highest if target.initial_alpha is None else target.initial_alpha
        self.gbar = target.initial_gbar

    @property
    def published(self) -> bool:
        """Whether the target is the paper's rule or its authors'."""
        target = self.layer.target
        adaptive = isinstance(target, aimle.AdaptiveTarget)
        return adaptive and target.scale == "theta" and target.rule == "additive"

    @np.errstate(all="ignore")
    def forward(self, theta: np.ndarray, mask: np.ndarray, k: np.ndarray | None, key: Tensor):
        """z, or None if a row without NaN has no solution."""
        layer = self.layer
        self.folds = self.listed.edge_of is not None and not self.published
        self.theta, self.mask = self._folded(theta), self._folded(mask)
        self.k = [None] * len(theta) if k is None else k.tolist()
        noisy = layer.training or layer.noise_in_eval
        self.samples = layer.nb_samples if noisy else 1
        instance = self.theta.shape[1:] if self.folds else self.listed.instance
        noise = layer.noise if noisy else None
        eps = aimle.sample_noise(
            noise,
            (len(theta), *instance),
            key,
            nb_samples=self.samples,
            instance_dims=len(instance),
        )
        self.eps = eps.numpy().reshape(len(theta), self.samples, self.theta.shape[1])
        centred = noise is not None and not (self.listed.solver.fixed_size or self.published)
        self.mean_noise = noise.mean if centred else 0.0
        tau = layer.theta_noise_temperature
        self.z = np.array(
            [[self._solved(b, s, 0.0, None, tau) for s in range(self.samples)] for b in self._rows]
        ).reshape(self.eps.shape)
        known = ~np.isnan(self._theta_norms(lambda b: 0.0))
        missing = known & np.isnan(self.z).all((1, 2))
        return None if missing.any() else self._spread(self.z)

    @np.errstate(all="ignore")
    def backward(self, dy: np.ndarray) -> np.ndarray:
        """The gradient of theta for dy [B, R, n], R = 1 for output="mean"; updates the state."""
        d, layer = self._folded(dy), self.layer
        self.free = self.mask & ~np.isinf(self.theta)
        sign = -1.0 if layer.sense == "min" else 1.0
        if layer.difference == "straight_through":
            return self._spread(np.where(self.free, sign * d.sum(1, dtype=np.float64), 0.0))
        steps, shared, counted = self._steps(d)
        central = layer.difference == "central"
        tau = layer.target_noise_temperature
        gradient, counts = np.zeros(self.theta.shape), []
        for b in self._rows:
            for s in range(self.samples):
                r = s if d.shape[1] > 1 else 0
                step = steps[b, r]
                if central or tau != layer.theta_noise_temperature:
                    left = self._solved(b, s, step if central else 0.0, d[b, r], tau)
                else:
                    left = self.z[b, s]
                change = left - self._solved(b, s, -step, d[b, r], tau)
                if counted[b, r] and not np.isnan(change).any():
                    counts.append(np.count_nonzero(change))
                divisor = (2.0 if central else 1.0) * step
                if layer.target == self._reference():
                    divisor /= math.sqrt(self.samples)
                gradient[b] += change / divisor if step > 0 else change * step
            if layer.output == "mean":
                gradient[b] /= self.samples
        gradient = np.where(self.free, sign * gradient, 0.0)
        if counts:
            self._update(np.array(counts), shared[counted.any(1)])
        return self._spread(gradient)

    # ---- Solutions -------------------------------------------------------------------------------

    @property
    def _rows(self) -> range:
        return range(len(self.theta))

    def _folded(self, x: np.ndarray) -> np.ndarray:
        """Directed entries as edges."""
        if not self.folds:
            return x
        pairs = [np.flatnonzero(self.listed.edge_of == e) for e in range(x.shape[-1] // 2)]
        join = np.logical_and if x.dtype == bool else np.add
        return np.stack([join(x[..., i], x[..., j]) for i, j in pairs], -1)

    def _spread(self, z: np.ndarray) -> np.ndarray:
        return z[..., self.listed.edge_of] if self.folds else z

    def _solved(self, b: int, s: int, step: float, d: np.ndarray | None, tau: float) -> np.ndarray:
        """MAP(s theta + step d + tau eps), NaN without a solution."""
        if math.isnan(step):
            return np.full(self.theta.shape[1], np.nan)
        number = self.theta.dtype.type
        of_theta = number(-1.0 if self.layer.sense == "min" else 1.0)
        of_solver = number(-1.0 if self.listed.solver.sense == "min" else 1.0)
        x = of_theta * self.theta[b]
        if d is not None:
            moves = np.isfinite(self.theta[b])
            x = x + np.where(moves, (step * d.astype(np.float64)).astype(number), number(0))
        x = of_solver * (x + number(tau) * self.eps[b, s].astype(number))
        x = x - number(float(of_solver) * tau * self.mean_noise)
        mask, edge_of = self.mask[b], self.listed.edge_of
        directed = edge_of is not None and not self.folds
        if directed:
            self.folds = True
            x, mask = self._folded(x), self._folded(mask)
            self.folds = False
        z, ambiguous = self.listed.best(x, mask, self.k[b])
        if ambiguous:
            raise AmbiguousError
        if z is None:
            return np.full(self.theta.shape[1], np.nan)
        return z[edge_of] if directed else z

    # ---- The step size ---------------------------------------------------------------------------

    def _reference(self) -> aimle.AdaptiveTarget | None:
        """The target, if it is the authors'."""
        return self.layer.target if getattr(self.layer.target, "_reference", False) else None

    def _norm(self, b: int, x: np.ndarray) -> float:
        """||P x|| over the free entries."""
        values = x[self.free[b]].astype(np.float64)
        if self.layer.target.scale != "theta" and self.listed.solver.fixed_size and len(values):
            values = values - values.mean()
        return math.sqrt((values**2).sum())

    def _scale(self, theta: float, entries: int) -> float:
        layer = self.layer
        stddev = 0.0 if layer.noise is None else layer.noise.stddev
        noise = layer.target_noise_temperature * stddev * math.sqrt(entries)
        if layer.target.scale == "theta":
            return theta
        if layer.target.scale == "noise" and noise > 0:
            return noise
        return max(theta, noise) or math.sqrt(entries)

    def _can_change(self, b: int) -> bool:
        if self.layer.target.scale == "theta":
            return True
        ones, entries = self.listed.ones if self.k[b] is None else self.k[b], self.free[b].sum()
        return bool(entries > 0 if ones is None else 0 < ones < entries)

    def _steps(self, d: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """lambda [B, R], the examples' own [B], and which gradients count [B, R]."""
        target, shape = self.layer.target, d.shape[:2]
        if isinstance(target, aimle.FixedTarget):
            lengths = np.array([[np.abs(x[self.free[b]]).sum() for x in d[b]] for b in self._rows])
            lengths = lengths.reshape(shape) + self._theta_norms(lambda b: 0.0)[:, None]
            shared = np.full(shape[0], target.lambda_)
            steps = np.where(np.isfinite(lengths), target.lambda_, np.nan)
            return steps, shared, np.isfinite(lengths) & (lengths > 0)
        theta = self._theta_norms(lambda b: self._norm(b, self.theta[b]))
        lengths = np.array([[self._norm(b, x) for x in d[b]] for b in self._rows]).reshape(shape)
        lengths = np.where(np.isfinite(theta)[:, None], lengths, np.nan)
        fixed = np.array([not self._can_change(b) for b in self._rows], dtype=bool)
        lengths = np.where(np.isfinite(lengths) & fixed[:, None], 0.0, lengths)
        of_batch = target.scope == "batch"
        counted = np.isfinite(lengths) & (
            (lengths > 0) | (self._reference() is not None and of_batch)
        )
        measures = self.layer.training and target.target_norm is None and self.updates % 50 == 0
        alpha = self.high if measures else self.alpha
        entries = self.free.sum(1)
        shared, own = np.zeros(shape[0]), np.zeros(shape)
        for b in self._rows:
            seen = lengths[b][counted[b]]
            seen = seen[seen >= 1e-6 * seen.max()] if len(seen) else seen
            if len(seen) and not of_batch:
                scale = self._scale(theta[b], entries[b])
                shared[b] = alpha * (scale / seen).mean()
                own[b, counted[b]] = alpha * scale / lengths[b][counted[b]]
        squares = (lengths[np.isfinite(lengths)] ** 2).sum()
        if of_batch and squares > 0:
            known = np.isfinite(theta)
            scale = self._scale(math.sqrt((theta[known] ** 2).sum()), entries[known].sum())
            shared[:] = alpha * scale * math.sqrt(shape[1] / squares)
        each = (
            own if target.scope == "sample" and shape[1] > 1 else shared[:, None] + np.zeros(shape)
        )
        return np.where(np.isfinite(lengths), each, np.nan), shared, counted

    def _theta_norms(self, norm) -> np.ndarray:
        """NaN for rows with a NaN that is not masked."""
        bad = np.isnan(np.where(self.mask, self.theta, 0)).any(1)
        return np.array([math.nan if bad[b] else norm(b) for b in self._rows])

    def _update(self, counts: np.ndarray, lambdas: np.ndarray) -> None:
        count = counts.mean()
        self.stats = {
            "lambda_mean": lambdas.mean(),
            "lambda_min": lambdas.min(),
            "lambda_max": lambdas.max(),
            "count": count,
            "changed_share": (counts > 0).mean(),
        }
        target = self.layer.target
        if isinstance(target, aimle.FixedTarget) or not self.layer.training:
            return
        if target.target_norm is None and self.updates % 50 == 0:
            before = self.updates // 50
            self.reach += (1 / (before + 1) if before < 10 else 0.1) * (count - self.reach)
            self.gbar = count if self.updates == 0 else self.gbar
            self.updates += 1
            return
        self.gbar = target.decay * self.gbar + (1 - target.decay) * count
        wanted = target.target_norm
        if wanted is None:
            wanted = self.reach / (2 * math.sqrt(self.samples))
        rises = self.gbar < wanted if self._reference() is not None else self.gbar <= wanted
        if target.rule == "multiplicative":
            alpha = self.alpha * target.factor if rises else self.alpha / target.factor
        else:
            change = target.step if rises else -target.step
            self.velocity = target.momentum * self.velocity + change
            alpha = self.alpha + self.velocity
        self.alpha = min(max(alpha, self.low), self.high)
        self.updates += 1
