"""Fits the coefficients in aimle/noise/exp.h and aimle/estimate/threshold_weight.h and prints them.

Deterministic: interpolation at Chebyshev nodes in 40 digits, rounded to float64.

    python scripts/fit_weight_polynomials.py
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 40


def expm1_tail(r: mp.mpf) -> mp.mpf:
    """(e^r - 1 - r) / r^2."""
    if abs(r) < 1e-6:
        return mp.fsum(r**i / mp.factorial(i + 2) for i in range(8))
    return (mp.expm1(r) - r) / r**2


def mills(a: mp.mpf) -> mp.mpf:
    """The normal distribution's (1 - F(a)) / p(a), for a >= 0."""
    if a > 60:
        total, term = mp.mpf(0), 1 / a
        for i in range(1, 40):
            total, term = total + term, -term * (2 * i - 1) / a**2
        return total
    return mp.sqrt(mp.pi / 2) * mp.exp(a * a / 2) * mp.erfc(a / mp.sqrt(2))


def scaled_mills(t: mp.mpf) -> mp.mpf:
    """(1 + a) mills(a) at a = 4 (1 + t) / (1 - t), 1 at t = 1."""
    if 1 - t < mp.mpf(10) ** -20:
        return mp.mpf(1)
    a = 4 * (1 + t) / (1 - t)
    return (1 + a) * mills(a)


def fit(
    name: str, function: Callable[[mp.mpf], mp.mpf], interval: list[mp.mpf], degree: int
) -> None:
    coefficients, error = mp.chebyfit(function, interval, degree + 1, error=True)
    print(f"{name}, degree {degree}, error {mp.nstr(error, 3)}, from the highest degree down:")
    for c in coefficients:
        print(f"  {float(c).hex()}")


if __name__ == "__main__":
    half = mp.log(2) / 2 * mp.mpf("1.0001")
    fit("(e^r - 1 - r) / r^2 for |r| <= log(2) / 2", expm1_tail, [-half, half], 9)
    fit("(1 + a) mills(a) in t = (a - 4) / (a + 4)", scaled_mills, [-1, 1], 18)
