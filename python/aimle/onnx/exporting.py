"""A check that torch.compile and torch.export evaluate while they trace."""

import torch


@torch.compiler.assume_constant_result
def exporting() -> bool:
    """Whether torch.onnx.export is running: also inside torch.export with strict=True, where
    PyTorch's own check returns False."""
    return torch.onnx.is_in_onnx_export()
