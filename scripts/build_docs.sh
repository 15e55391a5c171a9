#!/usr/bin/env bash
# Builds the documentation: build_docs.sh BUILDER FOLDER (html or linkcheck). Sphinx, and Jupyter for
# the notebooks, have their own virtual environment, .venv-docs, which includes the packages of
# $PYTHON.
set -euo pipefail
cd "$(dirname "$0")/.."

builder=$1
out=$2
python=${PYTHON:-$PWD/.venv/bin/python}

scripts/install_system_packages.sh system_packages_docs.txt
if ! cmp -s requirements-docs.txt .venv-docs/installed.txt; then
  echo "Documentation: creating .venv-docs"
  "$python" -m venv --clear .venv-docs
  "$python" -c 'import site; print("\n".join(site.getsitepackages()))' \
    >"$(.venv-docs/bin/python -c 'import site; print(site.getsitepackages()[0])')/project.pth"
  .venv-docs/bin/python -m pip --disable-pip-version-check install -q -r requirements-docs.txt
  cp requirements-docs.txt .venv-docs/installed.txt
fi

mkdir -p build/docs
doxygen docs/Doxyfile
options=()
if [[ $builder != html ]]; then options=(-D nb_execution_mode=off); fi
export PYTHONPATH=$PWD/python
jobs=${JOBS:-$(scripts/jobs.sh)}
.venv-docs/bin/python -m sphinx -E -a -W --keep-going -q -j "$jobs" -b "$builder" \
  "${options[@]}" -d build/docs/doctrees docs "$out"
if [[ $builder == html ]]; then echo "Documentation: $out/index.html"; fi
