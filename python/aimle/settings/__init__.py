"""Settings of layers and solvers: those that layers share, their defaults, names and checks."""
