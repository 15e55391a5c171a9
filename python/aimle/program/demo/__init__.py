"""A tour of the library: `python -m aimle.demo --out out/demo`."""
