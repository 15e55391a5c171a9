"""The adaptive state of layers: shared between processes, and loaded from checkpoints."""
