"""Benchmarks of the estimators on training tasks: ``python -m aimle.program.benchmark training``.

methods          what is compared: the default, the paper's rule, IMLE over a grid of lambda, ...
tasks            what is trained, for how long, and the metric; the only list of tasks
program_tasks    runs the tasks that are experiments of the program ``aimle train``
digits           a selection of pixels, scikit-learn's digits
pyepo_problems   shortest path and knapsack with PyEPO's data, OR-Tools models and PyEPO's layers
results          the CSV file of finished runs
table            the Markdown page made from it
"""
