#!/usr/bin/env bash
# Feeds the readers of build/fuzz with INPUTS damaged inputs in all: scripts/fuzz.sh INPUTS SEED
#
# Checkpoints and the settings of estimators, which need Torch, get a tenth of them. What Torch keeps
# until the end is no leak of the readers. Inputs that break a reader are written to build/fuzz.
set -euo pipefail
cd "$(dirname "$0")/../build/fuzz"
inputs=$1
tenth=$((inputs / 10))
options=(--seed "$2" --corpus ../../tests/fuzz/corpus)
tests/fuzz/fuzz_readers --inputs $((inputs - tenth)) "${options[@]}"
ASAN_OPTIONS=detect_leaks=0 tests/fuzz/fuzz_torch_readers --inputs "$tenth" "${options[@]}"
