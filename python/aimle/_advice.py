"""What a diagnosis recommends, and why."""

from __future__ import annotations

import math
from typing import Any

# The same gradient, or the same bias, however many samples are taken. Such a one may point well and
# train badly (docs/results/gradients.md has both), so it is recommended only if nothing else applies.
_NO_LIMIT = ("ste", "identity", "dbb")
# z between 0 and 1, which not every loss takes
_SOFT = ("gumbel_softmax", "softsub", "sst", "l2x", "dpo")


def name_of(row: dict[str, Any]) -> str:
    """How a row's estimator is written on the command line, its fixed step included."""
    shown = row["estimator"]
    return f"{shown}:lambda={row['lambda']:g}" if row.get("fixed_lambda") else shown


def _has_no_limit(row: dict[str, Any]) -> bool:
    return row["estimator"].partition(":")[0] in _NO_LIMIT


def _is_soft(row: dict[str, Any]) -> bool:
    name, _, settings = row["estimator"].partition(":")
    return name in _SOFT and "hard=true" not in settings


def recommend(group: list[dict[str, Any]]) -> dict[str, Any]:
    """For rows of one S by falling cosine: the best, or what is as good and much simpler.

    Those whose bias more samples do not reduce are named, but not recommended.
    """
    limited = [row for row in group if not _has_no_limit(row)]
    candidates = limited or group
    best = chosen = candidates[0]
    for other in candidates:
        noise = 2 * math.hypot(best["cosine_se"], other["cosine_se"])
        simpler = chosen["fixed_lambda"] and not other["fixed_lambda"]
        harder = other["fixed_lambda"] and not chosen["fixed_lambda"]
        faster = other["microseconds"] < 0.8 * chosen["microseconds"]
        as_good = other["cosine"] >= best["cosine"] - noise
        if as_good and (simpler or (faster and not harder)):
            chosen = other
    reason = f"cosine {chosen['cosine']:.3f} at {chosen['microseconds']:.0f} us a call"
    if chosen is not best:
        reason += (
            f"; {name_of(best)} has {best['cosine']:.3f}, no more than the noise of this test, and "
            f"takes {best['microseconds'] / chosen['microseconds']:.1f} times as long"
        )
    if chosen["bias"] < 0.1:
        reason += "; hardly any bias"
    else:
        reason += f"; biased by {100 * chosen['bias']:.0f} % of the gradient's length"
    if chosen["fixed_lambda"]:
        reason += "; lambda is in units of this loss: it does not carry over"
    if not limited:
        reason += "; more samples do not reduce that, and it may train badly"
    elif group[0]["cosine"] > best["cosine"]:
        first = group[0]
        reason += (
            f"; {name_of(first)} has cosine {first['cosine']:.3f}, but a bias that more samples do "
            "not reduce, and may train badly"
        )
    if _is_soft(chosen):
        hard = next((row for row in candidates if not _is_soft(row)), None)
        reason += "; its samples are soft"
        if hard is not None:
            reason += f"; best with hard samples: {name_of(hard)}, cosine {hard['cosine']:.3f}"
    return {
        "samples": chosen["samples"],
        "estimator": chosen["estimator"],
        "lambda": chosen["lambda"] if chosen["fixed_lambda"] else None,
        "fixed_lambda": chosen["fixed_lambda"],
        "reason": reason,
    }
