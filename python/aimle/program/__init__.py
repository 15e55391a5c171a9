"""The Python side of the program `aimle`. The library does not need it.

launch       finds and runs the program
report       draws pages of runs and studies
data         fetches and recognises public data sets
campaign     runs of a campaign on several GPUs or a Ray cluster
benchmark    trains with every estimator and writes the table
demo         a tour of the library
"""
