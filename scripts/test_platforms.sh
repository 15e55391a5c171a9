#!/usr/bin/env bash
# Builds for other compilers and processors, and runs the tests: test_platforms.sh [clang] [arm64].
#
# clang: the core and the Torch library, with warnings as errors, and their C++ tests.
# arm64: the core, cross-compiled, and its tests under QEMU. The Torch library is compiled, but not
#        linked or run, against the headers of $PYTHON's torch, which are the same for both processors.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-$PWD/.venv/bin/python}
jobs=${JOBS:-$(scripts/jobs.sh)}

scripts/install_system_packages.sh system_packages_platforms.txt

test_clang() {
  cmake --preset clang -DPYTHON="$python"
  cmake --build --preset clang -j "$jobs"
  ctest --preset clang -j "$jobs" --progress
}

test_arm64() {
  cmake --preset arm64
  cmake --build --preset arm64 -j "$jobs"
  ctest --preset arm64 -j "$jobs" --progress
  cmake --preset arm64 -B build/arm64-torch -DAIMLE_TORCH=ON -DAIMLE_CUDA=OFF -DAIMLE_TESTS=OFF \
    -DPYTHON="$python"
  "$python" scripts/check_compiles.py build/arm64-torch aimle_torch --jobs "$jobs"
}

platforms=("$@")
if ((${#platforms[@]} == 0)); then platforms=(clang arm64); fi
for platform in "${platforms[@]}"; do
  case $platform in
    clang | arm64) "test_$platform" ;;
    *) echo "unknown platform '$platform': expected clang or arm64" >&2 && exit 2 ;;
  esac
done
