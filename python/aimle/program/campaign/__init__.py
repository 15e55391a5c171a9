"""The runs of `aimle train --grid … --seeds … --workers …` on several GPUs or a Ray cluster.

cell         one run: a process `aimle train … --resume` in a folder that the program prepared
schedule     what runs, what is done, what is tried again; messages
gpu_pool     runs on the GPUs of this machine, by concurrent.futures
ray_pool     runs as tasks of a Ray cluster

The program (experiments/engine/worker_runs.cpp) writes the request, and the summary in the end.
"""
