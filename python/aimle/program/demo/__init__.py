"""A tour of the library: `python -m aimle.program.demo --out out/demo`."""
