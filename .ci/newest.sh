#!/usr/bin/env bash
# Install the newest versions that pyproject.toml allows into a throw-away environment and import every module.
set -euo pipefail
cd "$(dirname "$0")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/python" -m pip install --quiet uv
"$folder/venv/bin/uv" pip install --quiet --upgrade -p "$folder/venv/bin/python" ".[service]"
cd "$folder"
venv/bin/python - <<'PY'
import importlib
import pkgutil

import ragwb

names = [module.name for module in pkgutil.walk_packages(ragwb.__path__, "ragwb.") if module.name != "ragwb.__main__"]
for name in names:
    importlib.import_module(name)
print(f"{len(names)} modules import with the newest dependencies")
PY
