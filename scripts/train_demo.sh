#!/usr/bin/env bash
# Trains a small discrete auto-encoder of drawn digits and draws its report, in a new folder: the
# given one, or the first of NAME-2, NAME-3, ... that does not exist.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:-out/digits}
out=$name
for ((i = 2; ; i++)); do
  [[ -e $out ]] || break
  out=$name-$i
done

printf '\nTraining an auto-encoder with a discrete code on drawn digits\n\n'
build/release/aimle train dvae --out "$out" \
  --examples 5000 --test_examples 500 --validation 500 --epochs 3 --nb_samples 5
build/release/aimle report "$out" --out "$out/report.html"
echo "Pictures: $out/pictures/reconstructions.png, $out/pictures/samples.png"
