"""The standard error of a mean: the ± of reports and benchmarks."""

import math
import statistics
from collections.abc import Sequence


def standard_error(values: Sequence[float]) -> float:
    """The sample standard deviation / √n of n values; NaN for fewer than two."""
    if len(values) < 2:
        return math.nan
    return statistics.stdev(values) / math.sqrt(len(values))
