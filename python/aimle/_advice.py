"""The recommendation of a diagnosis, and its reason."""

from __future__ import annotations

import math
from typing import Any

# These have the same gradient, or the same bias, for any number of samples. They can have a high
# cosine and still train badly (docs/results/gradients.md has both), so they are a last resort.
_NO_LIMIT = ("ste", "identity", "dbb")
# z is between 0 and 1, which not every loss accepts.
_SOFT = ("gumbel_softmax", "softsub", "sst", "l2x", "dpo")


def name_of(row: dict[str, Any]) -> str:
    """The row's estimator as written on the command line, including its fixed step."""
    shown = row["estimator"]
    return f"{shown}:lambda={row['lambda']:g}" if row.get("fixed_lambda") else shown


def _has_no_limit(row: dict[str, Any]) -> bool:
    return row["estimator"].partition(":")[0] in _NO_LIMIT


def _is_soft(row: dict[str, Any]) -> bool:
    name, _, settings = row["estimator"].partition(":")
    return name in _SOFT and "hard=true" not in settings


def recommend(group: list[dict[str, Any]]) -> dict[str, Any]:
    """For rows of one S by decreasing cosine: the best, or one as good and much simpler.

    Estimators whose bias does not shrink with more samples are named but not recommended.
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
    reason = f"cosine {chosen['cosine']:.3f} at {chosen['microseconds']:.0f} us per call"
    if chosen is not best:
        reason += (
            f"; {name_of(best)} has {best['cosine']:.3f}, within the noise of this test, and "
            f"takes {best['microseconds'] / chosen['microseconds']:.1f} times as long"
        )
    if chosen["bias"] < 0.1:
        reason += "; almost unbiased"
    else:
        reason += f"; biased by {100 * chosen['bias']:.0f} % of the gradient's length"
    if chosen["fixed_lambda"]:
        reason += "; lambda is in units of this loss and does not transfer to others"
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
