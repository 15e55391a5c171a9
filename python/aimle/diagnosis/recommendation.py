"""The recommendation of a diagnosis, and its reason.

A high cosine does not imply good training, so the rule follows what trained well
(docs/results/advice.md has the tasks, and how often the rule is right):

1. A loss that is linear in z, such as a regret or the number of wrong entries: `imle` with a long
   step (aimle.diagnosis.long_step), which needs no tuning.
2. One of n: the highest cosine of `gumbel_rao`, `reinmax` and `thresholds`.
3. A saturated layer, whose noise hardly changes its choices: `imle` with a long step as well.
4. At most three samples, and the structure has an exact distribution: `exact`. Its gradient has
   little variance, which matters most if samples are few.
5. Otherwise the given layer if it adapts its step, or `aimle`. With ten samples no estimator was
   better more often, and the cosine did not tell when.
6. Without these, as with `estimators=["sfe", "ste"]`: the highest cosine, or an equally good one
   that is much simpler.

The samples of the first five are hard, zeros and ones.
"""

import math
from collections.abc import Iterable
from typing import Any

from aimle.diagnosis.contestants import YOURS

_FOR_ONE_OF_N = ("gumbel_rao", "reinmax", "thresholds")
_FEW_SAMPLES = 3  # the tasks had 1, for which `exact` was better, or 10, for which it was not
# These have the same gradient, or the same bias, for any number of samples. They can have a high
# cosine and still train badly (docs/results/gradients.md has both), so they are a last resort.
_NO_LIMIT = ("ste", "identity", "dbb")
# z is between 0 and 1, which not every loss accepts.
_SOFT = ("gumbel_softmax", "softsub", "sst", "l2x", "dpo")

_OF_LINEAR_LOSSES = (
    "the loss is linear in z, so a step this long compares z with the best solution for the loss; "
    "if you know that solution, aimle.perturbed_fenchel_young_loss needs no estimator"
)
_OF_SATURATION = (
    "the scores are so large that the noise hardly changes the choices, and short steps do not "
    "change them either; a higher temperature or smaller scores may help too"
)

Row = dict[str, Any]


def name_of(row: Row) -> str:
    """The row's estimator as written on the command line, including its fixed step."""
    shown = row["estimator"]
    return f"{shown}:lambda={row['lambda']:g}" if row.get("fixed_lambda") else shown


def best_steps(rows: Iterable[Row]) -> list[Row]:
    """Each estimator and S at its best lambda, by decreasing cosine."""
    best: dict[tuple[str, int], Row] = {}
    for row in rows:
        key = (row["estimator"], row["samples"])
        if key not in best or row["cosine"] > best[key]["cosine"]:
            best[key] = row
    return sorted(best.values(), key=lambda row: -row["cosine"])


def _has_no_limit(row: Row) -> bool:
    return row["estimator"].partition(":")[0] in _NO_LIMIT


def _is_soft(row: Row) -> bool:
    name, _, settings = row["estimator"].partition(":")
    return name in _SOFT and "hard=true" not in settings


def _adapts(row: Row) -> bool:
    return row["estimator"] == "aimle" or (
        row["estimator"] == YOURS and row.get("alpha") is not None
    )


def _known(group: list[Row], structure: str, long_step: Row | None) -> list[Row]:
    """The rows that the first five rules recommend, the best first."""
    if long_step is not None:
        return [long_step]
    names: tuple[str, ...] = ()
    if structure == "Argmax":
        names = _FOR_ONE_OF_N
    elif group[0]["samples"] <= _FEW_SAMPLES:
        names = ("exact",)
    if found := [row for row in group if row["estimator"] in names]:
        return found
    return sorted(filter(_adapts, group), key=lambda row: row["estimator"] != YOURS)


def _as_good_and_simpler(candidates: list[Row]) -> Row:
    """The first, or one whose cosine is equal within the noise and that is faster or untuned."""
    best = chosen = candidates[0]
    for other in candidates:
        noise = 2 * math.hypot(best["cosine_se"], other["cosine_se"])
        simpler = chosen["fixed_lambda"] and not other["fixed_lambda"]
        harder = other["fixed_lambda"] and not chosen["fixed_lambda"]
        faster = other["microseconds"] < 0.8 * chosen["microseconds"]
        as_good = other["cosine"] >= best["cosine"] - noise
        if as_good and (simpler or (faster and not harder)):
            chosen = other
    return chosen


def recommend(
    group: list[Row], structure: str = "", long_step: Row | None = None, saturated: bool = False
) -> Row:
    """The recommendation for rows of one S by decreasing cosine.

    structure and saturated: as in a Diagnosis; long_step: the row of `imle` with a long step, if
    that is recommended.
    """
    known = _known(group, structure, long_step)
    others = [row for row in group if not _has_no_limit(row)] or group
    best = known[0] if known else others[0]
    chosen = best if known else _as_good_and_simpler(others)
    return {
        "samples": chosen["samples"],
        "estimator": chosen["estimator"],
        "lambda": chosen["lambda"] if chosen["fixed_lambda"] else None,
        "fixed_lambda": chosen["fixed_lambda"],
        "reason": "; ".join(_reasons(chosen, best, group))
        if chosen is not long_step
        else _OF_SATURATION
        if saturated
        else _OF_LINEAR_LOSSES,
    }


def _reasons(chosen: Row, best: Row, group: list[Row]) -> list[str]:
    """What speaks for and against the choice; best: the one that it is as good as."""
    said = [f"cosine {chosen['cosine']:.3f} at {chosen['microseconds']:.0f} us per call"]
    if chosen is not best:
        said.append(
            f"{name_of(best)} has {best['cosine']:.3f}, within the noise of this test, and "
            f"takes {best['microseconds'] / chosen['microseconds']:.1f} times as long"
        )
    if chosen["bias"] < 0.1:
        said.append("almost unbiased")
    else:
        said.append(f"biased by {100 * chosen['bias']:.0f} % of the gradient's length")
    if chosen["fixed_lambda"]:
        said.append("lambda is in units of this loss and does not transfer to others")
    if _has_no_limit(chosen):
        said.append("more samples do not reduce that, and it may train badly")
    elif group[0]["cosine"] > best["cosine"]:
        said.append(_why_not(group[0]))
    if _is_soft(chosen):
        hard = next((row for row in group if not _is_soft(row) and not _has_no_limit(row)), None)
        said.append("its samples are soft")
        if hard is not None:
            said.append(f"best with hard samples: {name_of(hard)}, cosine {hard['cosine']:.3f}")
    return said


def _why_not(row: Row) -> str:
    """Why the highest cosine is not recommended."""
    found = f"{name_of(row)} has cosine {row['cosine']:.3f}, but "
    if _has_no_limit(row):
        return found + "a bias that more samples do not reduce, and may train badly"
    if _is_soft(row):
        return found + "soft samples: try it if your loss accepts them"
    if row["fixed_lambda"]:
        return found + "a lambda to tune: try it if you can"
    return found + "a high cosine does not imply good training: compare the two"
