"""Fits the coefficients in aimle/noise/math.h and aimle/noise/normal.h and prints them.

Deterministic. Every fit is a minimax fit by Lawson's reweighted least squares (the rational one
linearised about the denominator of the previous step). Coefficients are rounded to float32 from the
highest degree down, and the lower ones are fitted again each time. For each fit the script
prints the error of the ideal fit, and the error when evaluated in float32 with fma, as the headers
do.

    python scripts/fit_noise_polynomials.py
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

Array = NDArray[np.float64]


def minimax(basis: Array, target: Array, weight: Array, steps: int = 300) -> tuple[Array, float]:
    """Coefficients c with the least max |weight * (basis @ c - target)| seen, and that error."""
    scale = np.abs(basis).max(axis=0)
    emphasis = np.ones_like(target)
    best, best_error = np.zeros(basis.shape[1]), np.inf
    for _ in range(steps):
        row = np.sqrt(emphasis) * weight
        c = np.linalg.lstsq(basis / scale * row[:, None], target * row, rcond=None)[0] / scale
        error = np.abs((basis @ c - target) * weight)
        if error.max() < best_error:
            best, best_error = c, float(error.max())
        emphasis *= error / error.max() + 1e-3
        emphasis /= emphasis.max()
    return best, best_error


def rounded_minimax(basis: Array, target: Array, weight: Array) -> tuple[Array, float, float]:
    """The same with float32 coefficients; also the error before rounding."""
    _, ideal = minimax(basis, target, weight)
    coefficients = np.zeros(basis.shape[1])
    rest = target.copy()
    for degree in reversed(range(basis.shape[1])):
        c, _ = minimax(basis[:, : degree + 1], rest, weight, steps=80)
        coefficients[degree] = np.float32(c[degree])
        rest = rest - basis[:, degree] * coefficients[degree]
    return coefficients, ideal, float(np.abs(rest * weight).max())


def fma(a: Array, b: Array, c: Array | float) -> Array:
    """float32 fma: the product is exact in float64, the double rounding is rare and harmless."""
    exact = np.float64(np.float32(a)) * np.float64(np.float32(b)) + np.float64(np.float32(c))
    return exact.astype(np.float32)


def horner(coefficients: Array, x: Array) -> Array:
    value = np.full(x.shape, np.float32(coefficients[-1]))
    for c in coefficients[-2::-1]:
        value = fma(value, x, c)
    return value


def show(name: str, coefficients: Array) -> None:
    print(f"  {name}, from degree 0:")
    for c in coefficients:
        print(f"    {float(np.float32(c)).hex()}  # {c:.9g}")


def fit_log1p(degree: int) -> None:
    """log(1 + f) = f + f^2 R(f) for f in [-1/2, 0], least relative error."""
    f = -0.25 + 0.25 * np.cos(np.linspace(1e-3, np.pi, 4001))
    exact = np.log1p(f)
    basis = f[:, None] ** np.arange(degree + 1)
    c, ideal, rounded = rounded_minimax(basis, (exact - f) / f**2, f**2 / np.abs(exact))

    f32 = -np.exp2(np.linspace(-33, -1, 400_001)).astype(np.float32)
    value = fma(f32 * f32, horner(c, f32), f32)
    in_float = np.abs(value / np.log1p(np.float64(f32)) - 1).max()
    print(f"log1p on [-1/2, 0], degree {degree}: relative error {ideal:.2e}, "
          f"rounded coefficients {rounded:.2e}, in float32 {in_float:.2e}")  # fmt: skip
    show("R", c)


def fit_normal(degree: int) -> None:
    """Upper normal quantile = v N(w) / D(w), v = 1 - 2p, w = -log(4 p (1 - p)), D(0) = 1."""
    log_p = np.log(2.0) * np.linspace(-33, -1, 8001)
    near_half = 0.5 - np.geomspace(1e-7, 0.1, 2000)
    p = np.concatenate([np.exp(log_p)[:-1], near_half])
    v, w, exact = 1 - 2 * p, -np.log(4 * p * (1 - p)), -ndtri(p)
    target, weight = exact / v, v / (1 + exact)
    powers = w[:, None] ** np.arange(degree + 1)
    basis = np.hstack([powers, -target[:, None] * powers[:, 1:]])

    scale = np.abs(basis).max(axis=0)
    emphasis, denominator = np.ones_like(w), np.ones_like(w)
    best, best_error = np.zeros(basis.shape[1]), np.inf
    for step in range(300):
        row = np.sqrt(emphasis) * weight / denominator
        c = np.linalg.lstsq(basis / scale * row[:, None], target * row, rcond=None)[0] / scale
        denominator = 1 + powers[:, 1:] @ c[degree + 1 :]
        error = np.abs((powers @ c[: degree + 1] / denominator - target) * weight)
        if error.max() < best_error:
            best, best_error = c, float(error.max())
        if step > 5:
            emphasis *= np.sqrt(error / error.max() + 1e-4)
            emphasis /= emphasis.max()

    bottom = np.concatenate([[1.0], best[degree + 1 :].astype(np.float32).astype(float)])
    divisor = powers @ bottom
    top, _, rounded = rounded_minimax(powers / divisor[:, None], target, weight)

    p32 = np.exp2(np.linspace(-33, -1, 400_001)).astype(np.float32)
    w32 = -np.log(4 * np.float64(p32) * (1 - np.float64(p32))).astype(np.float32)
    value = fma(np.float32(-2), p32, 1) * (horner(top, w32) / horner(bottom, w32))
    wanted = -ndtri(np.float64(p32))
    in_float = (np.abs(value - wanted) / (1 + wanted)).max()
    print(f"normal quantile, degree {degree}/{degree}: error/(1+|x|) {best_error:.2e}, "
          f"rounded coefficients {rounded:.2e}, in float32 {in_float:.2e}")  # fmt: skip
    show("N", top)
    show("D", bottom)


if __name__ == "__main__":
    fit_log1p(degree=7)
    fit_normal(degree=5)
