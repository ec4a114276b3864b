#!/usr/bin/env bash
# Resolve pyproject.toml anew into the constraints: every package with its hashes, no index address.
set -euo pipefail
cd "$(dirname "$0")/.."
uv=.venv/bin/uv
options=(--quiet --generate-hashes --no-emit-index-url --no-emit-find-links --no-header --no-annotate --universal --python-version 3.11)
"$uv" pip compile "${options[@]}" --all-extras pyproject.toml -o .ci/constraints.txt
echo uv | "$uv" pip compile "${options[@]}" - -o .ci/bootstrap.txt
