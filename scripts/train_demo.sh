#!/usr/bin/env bash
# Trains a small discrete auto-encoder of drawn digits into the folder given, and draws its report.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-out/demo/dvae}

printf '\nTraining an auto-encoder with a discrete code on drawn digits\n\n'
build/release/aimle train dvae --out "$out" --force \
  --examples 5000 --test_examples 500 --validation 500 --epochs 3 --nb_samples 5
build/release/aimle report "$out" --out "$out/report.html"
echo "Pictures: $out/pictures/reconstructions.png, $out/pictures/samples.png"
