"""The Python part of the program `aimle`. The library does not depend on it.

launch       finds and runs the program
report       draws pages of runs and studies
data         downloads and identifies public data sets
campaign     distributes the runs of a campaign over several GPUs or a Ray cluster
benchmark    trains with every estimator and writes the table
demo         a tour of the library
"""
