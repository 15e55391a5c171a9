"""Scores and masks for tests of misuse."""

import torch


def scores(*shape: int) -> torch.Tensor:
    return torch.linspace(0, 1, max(1, torch.Size(shape).numel()))[
        : torch.Size(shape).numel()
    ].view(shape)


def with_value(value: float, *index: int, shape: tuple[int, ...]) -> torch.Tensor:
    tensor = scores(*shape)
    tensor[index] = value
    return tensor


def bools(*rows: str) -> torch.Tensor:
    """bools("101", "111"): one string per row, "1" = may be chosen."""
    return torch.tensor([[c == "1" for c in row] for row in rows])
