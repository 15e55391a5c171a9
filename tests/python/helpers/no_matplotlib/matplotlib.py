"""First on PYTHONPATH, this module simulates a Python without matplotlib."""

raise ImportError("matplotlib is not installed")
