#!/usr/bin/env bash
# Runs the readers of build/fuzz on INPUTS damaged inputs in total: scripts/fuzz.sh INPUTS SEED
#
# Checkpoints and the settings of estimators, which need Torch, get a tenth of them. Memory that Torch
# keeps until the end is not a leak of the readers. Inputs that break a reader are written to build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/../build/fuzz"
inputs=$1
tenth=$((inputs / 10))
options=(--seed "$2" --corpus ../../tests/fuzz/corpus)
tests/fuzz/fuzz_readers --inputs $((inputs - tenth)) "${options[@]}"
ASAN_OPTIONS=detect_leaks=0 tests/fuzz/fuzz_torch_readers --inputs "$tenth" "${options[@]}"
