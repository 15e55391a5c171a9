#!/usr/bin/env bash
# Runs the tests that use the GPU, several files in parallel, and prints the counts:
#     N passed, M failed, K skipped
set -uo pipefail
cd "$(dirname "$0")/.."

results=$PWD/build/release/test_gpu_results
rm -rf "$results" && mkdir -p "$results"
export results

ctest --preset release -R OnDevice --output-junit "$results/ctest.xml"

run_file() {
  name=$(basename "$1" .py)
  "$PYTHON" -m pytest "$1" -q -k "cuda or same_bits or gpu" -p no:cacheprovider \
    --junitxml "$results/$name.xml" > "$results/$name.txt" 2>&1
  case $? in
    0) tail -n 1 "$results/$name.txt" | sed "s/^/$name: /" ;;
    5) rm "$results/$name.xml" ;;  # nothing in this file uses the GPU
    *) cat "$results/$name.txt"; touch "$results/$name.xml.failed" ;;
  esac
}
export -f run_file
find tests/python -name 'test_*.py' | sort | xargs -P "$JOBS" -I{} bash -c 'run_file {}'

# If the process of a file died, there are no counts; count_tests.py then reports its name.
died=()
for file in "$results"/*.failed; do
  [[ -e $file && ! -e ${file%.failed} ]] && died+=("${file%.failed}")
done
"$PYTHON" scripts/count_tests.py "$results"/*.xml ${died[@]+"${died[@]}"}
