"""The status of each row."""

from enum import IntEnum


class Status(IntEnum):
    """The outcome of one instance, as stored in the uint8 status tensor of ``aimle.solve``.

    A row whose status is not ``OK`` is filled with NaN.
    """

    OK = 0
    NAN = 1
    BAD_K = 2
    TOO_FEW_ENTRIES = 3
    DISCONNECTED = 4
    NEGATIVE_COST = 5
    BAD_DATA = 6
    TOO_LARGE = 7

    def describe(self) -> str:
        """A human-readable sentence: ``Status(1).describe() == "a score is NaN"``."""
        return _SENTENCES[self]


_SENTENCES = {
    Status.OK: "solved",
    Status.NAN: "a score is NaN",
    Status.BAD_K: "k is negative or larger than the row",
    Status.TOO_FEW_ENTRIES: "mask and -inf leave too few entries to choose from",
    Status.DISCONNECTED: "mask, infinite costs or the shape leave no connected solution",
    Status.NEGATIVE_COST: "a cost is negative",
    Status.BAD_DATA: (
        "the instance's data are invalid: a weight or a capacity is negative, or a graph has a "
        "vertex or an edge that it should not have"
    ),
    Status.TOO_LARGE: (
        "the instance is too large for an exact solution: scale its weights down, or raise the "
        "solver's max_capacity if the capacity is above it"
    ),
}
