"""In front on PYTHONPATH: a Python without matplotlib, which draws no figures."""

raise ImportError("matplotlib is not installed")
