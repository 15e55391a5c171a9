"""Layers whose solver is a Python callable: the stages of a call, its arguments and its answers."""
