"""Layers in ``torch.onnx.export``."""
