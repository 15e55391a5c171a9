#!/usr/bin/env bash
# Feeds the readers of build/fuzz with INPUTS damaged inputs in all: scripts/fuzz.sh INPUTS SEED
#
# Checkpoints and the settings of estimators, which need Torch, get a tenth of them. What Torch keeps
# until the end is no leak of the readers.
set -euo pipefail
cd "$(dirname "$0")/.."
inputs=$1 seed=$2
tenth=$((inputs / 10))
programs=build/fuzz/tests/fuzz
$programs/fuzz_readers --inputs $((inputs - tenth)) --seed "$seed" --corpus tests/fuzz/corpus
ASAN_OPTIONS=detect_leaks=0 \
  $programs/fuzz_torch_readers --inputs "$tenth" --seed "$seed" --corpus tests/fuzz/corpus
