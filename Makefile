# `make demo` and `make test` work on a fresh Debian or Ubuntu machine.
#
# PYTHON=…  builds for and runs with your own Python (torch >= 2.11; nothing is installed into it)
# JOBS=…    number of parallel compilations
# COUNT=…, SECONDS=…, SEED=…  with soak: number of trials, time limit, seed
# PLATFORMS=…  with test-platforms: of clang and arm64
# FUZZ_INPUTS=…, FUZZ_SEED=…  with fuzz: number of inputs (1,000,000), seed
# REFERENCE=…  with bench: a checkout of the authors' code to compare with

VENV_PYTHON := .venv/bin/python
PYTHON ?= $(VENV_PYTHON)
JOBS ?= $(shell scripts/jobs.sh)
FUZZ_INPUTS ?= 1000000
FUZZ_SEED ?= 1

# An absolute path without resolving links, so that a virtual environment stays one.
override PYTHON := $(if $(findstring /,$(PYTHON)),$(abspath $(PYTHON)),$(shell command -v $(PYTHON) || echo $(PYTHON)))
export PATH := $(dir $(PYTHON)):$(PATH)
export PYTHON JOBS

.DEFAULT_GOAL := help
.PHONY: help setup check-python build library demo test test-extras test-repeatedly test-platforms test-gpu bench bench-gpu lint format sanitize sanitize-gpu soak fuzz wheel docs docs-links docs-pictures versions clean

help:  ## Lists the targets
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-20s %s\n", $$1, $$2}'

# ---- Set-up ---------------------------------------------------------------------------------------

ifeq ($(PYTHON),$(abspath $(VENV_PYTHON)))
PYTHON_READY := .venv/.ready
else
PYTHON_READY := check-python
endif

setup: build/.system_packages_ready $(PYTHON_READY)  ## Installs missing system packages and creates .venv

build/.system_packages_ready: scripts/system_packages.txt scripts/install_system_packages.sh
	@scripts/install_system_packages.sh
	@mkdir -p $(@D) && touch $@

.venv/.ready: requirements.txt scripts/create_venv.sh | build/.system_packages_ready
	@scripts/create_venv.sh
	@touch $@

check-python:
	@"$(PYTHON)" scripts/check_python.py

# ---- Build and run --------------------------------------------------------------------------------

build: setup  ## Builds the libraries and the C++ tests in build/release
	@cmake --preset release -DPYTHON="$(PYTHON)"
	@cmake --build --preset release -j $(JOBS)

demo: library  ## Solves and learns; draws the results on one page (out/demo/report.html); more after `make build`
	@! test -x build/release/aimle || scripts/train_demo.sh out/digits
	@PYTHONPATH=python "$(PYTHON)" -m aimle.program.demo

# Threads that wait for work sleep: spinning ones slow the other processes of a test run down.
test test-extras test-repeatedly: export OMP_WAIT_POLICY := passive

test: build  ## Runs every C++ and Python test and prints the counts
	@scripts/test.sh

test-extras: build build/extras/.ready  ## Runs the tests of optional packages, in an environment of their own
	@scripts/test_extras.sh

build/extras/.ready: requirements-extras.txt scripts/create_extras_venv.sh | setup
	@scripts/create_extras_venv.sh
	@touch $@

test-platforms: setup  ## Builds with clang and for ARM64 and runs the C++ tests (PLATFORMS="clang arm64")
	@scripts/test_platforms.sh $(PLATFORMS)

test-repeatedly: build  ## Runs every test RUNS=10 times under load in random orders (SEED=1)
	@scripts/test_repeatedly.sh

FOR_THIS_GPU := -DAIMLE_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=native

test-gpu: setup  ## Builds with GPU kernels and runs the tests that use them
	@cmake --preset release -DPYTHON="$(PYTHON)" $(FOR_THIS_GPU)
	@cmake --build --preset release -j $(JOBS)
	@scripts/test_gpu.sh

bench: setup  ## Checks results, then compares their speed with common alternatives
	@cmake --preset release -DPYTHON="$(PYTHON)" -DAIMLE_BENCHMARKS=ON
	@cmake --build --preset release -j $(JOBS)
	@PYTHONPATH=python "$(PYTHON)" benchmarks/bench.py
	@PYTHONPATH=python "$(PYTHON)" benchmarks/bench_layer.py $(if $(REFERENCE),--reference "$(REFERENCE)")
	@for program in build/release/benchmarks/*_benchmark; do $$program --benchmark_min_time=0.05; done
	@! test -x build/release/benchmarks/dvae_step || build/release/benchmarks/dvae_step 2 20

bench-gpu: setup  ## Checks the GPU's results against the CPU's, then measures their speed
	@cmake --preset release -DPYTHON="$(PYTHON)" $(FOR_THIS_GPU) -DAIMLE_BENCHMARKS=ON
	@cmake --build --preset release -j $(JOBS)
	@PYTHONPATH=python "$(PYTHON)" benchmarks/bench_gpu.py
	@PYTHONPATH=python "$(PYTHON)" benchmarks/structures_gpu.py
	@for program in build/release/benchmarks/cuda_*; do $$program || exit 1; done

wheel: setup  ## Builds a wheel for this torch in dist
	@"$(PYTHON)" -m pip wheel -v . --no-build-isolation --no-deps --wheel-dir dist

# ---- Documentation ----------------------------------------------------------------------------------

library: setup  # the Torch library alone
	@cmake --preset release -DPYTHON="$(PYTHON)"
	@cmake --build --preset release -j $(JOBS) --target aimle_torch

docs: library  ## Builds the documentation site (out/site/index.html)
	@scripts/build_docs.sh html out/site

docs-links: library  ## Checks every link of the documentation, external ones too (needs network)
	@scripts/build_docs.sh linkcheck out/site_links

docs-pictures: library  ## Draws the pictures of the documentation's concepts again (docs/pictures)
	@PYTHONPATH=python "$(PYTHON)" scripts/draw_concepts.py
	@PYTHONPATH=python "$(PYTHON)" scripts/draw_idea.py

# ---- Maintenance ----------------------------------------------------------------------------------

lint: setup  ## Checks format, style and types (clang-format, clang-tidy on the core, ruff, mypy)
	@scripts/lint.sh

format: setup  ## Formats all C++ and Python files
	@scripts/format.sh

sanitize: setup  ## Runs the core's tests under the address, undefined-behaviour and thread sanitizers
	@for preset in asan tsan; do cmake --preset $$preset && cmake --build --preset $$preset -j $(JOBS) \
	  && ctest --preset $$preset -j $(JOBS) || exit 1; done

fuzz: setup  ## Runs every parser of files and settings on damaged input, under the sanitizers
	@cmake --preset fuzz -DPYTHON="$(PYTHON)"
	@cmake --build --preset fuzz -j $(JOBS)
	@scripts/fuzz.sh $(FUZZ_INPUTS) $(FUZZ_SEED)

sanitize-gpu: setup  ## Runs every layer under compute-sanitizer's memcheck and racecheck
	@cmake --preset release -DPYTHON="$(PYTHON)" $(FOR_THIS_GPU)
	@cmake --build --preset release -j $(JOBS)
	@for tool in memcheck racecheck; do PYTHONPATH=python compute-sanitizer --tool $$tool --error-exitcode 1 \
	  --kernel-name kns=aimle "$(PYTHON)" tests/cuda/every_layer.py || exit 1; done

soak: build  ## Kills commands at random moments and resumes them: COUNT=100 SECONDS=600 SEED=…
	@PYTHONPATH=python:tests/python/helpers "$(PYTHON)" tests/python/program/soak.py --count $(or $(COUNT),100) \
	  --seconds $(or $(SECONDS),600) $(if $(SEED),--seed $(SEED))

versions: setup  ## Prints the versions in use
	@scripts/versions.sh

clean:  ## Removes everything that was built, but not .venv
	rm -rf build dist out
