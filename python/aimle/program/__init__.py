"""The Python side of the program `aimle`. The library does not need it.

launch       finds and runs the program
report       draws pages of runs and studies
data         fetches and recognises public data sets
benchmark    trains with every estimator and writes the table
demo         a tour of the library
"""
