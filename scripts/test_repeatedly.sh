#!/usr/bin/env bash
# Finds flaky tests: runs all of them RUNS times in random orders, with as many parallel copies of
# the suite as there are cores, so that each runs under load. SEED is the seed of the first order.
# Continues after failures; prints the names of the failed tests at the end.
set -uo pipefail
cd "$(dirname "$0")/.."

RUNS=${RUNS:-10} SEED=${SEED:-1}
# Many copies with one thread per core each would mostly measure the scheduler.
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-2}
results=$PWD/build/release/repeated
rm -rf "$results" && mkdir -p "$results"
export results

run_once() {
  sleep $(($1 % 10))  # ctest draws its order from the clock
  ctest --preset release -j 2 --schedule-random --output-junit "$results/ctest_$1.xml" \
    > "$results/ctest_$1.txt" 2>&1
  "$PYTHON" -m pytest tests -q --shuffle "$1" -p no:cacheprovider \
    --junitxml "$results/pytest_$1.xml" > "$results/pytest_$1.txt" 2>&1
  echo "order $1: $("$PYTHON" scripts/count_tests.py "$results"/{ctest,pytest}_"$1".xml)"
}
export -f run_once
seq "$SEED" $((SEED + RUNS - 1)) | xargs -P "$(nproc)" -I{} bash -c 'run_once {}'

! grep -hE '^(FAILED|ERROR) |\(Failed\)|\(Timeout\)|\(SEGFAULT\)|\*\*\*Exception|\(Subprocess ' "$results"/*.txt
