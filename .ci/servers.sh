#!/usr/bin/env bash
# Jobs that start heavy foreign servers, each in an environment of its own and with a limit.
set -euo pipefail
cd "$(dirname "$0")/.."
timeout 900 .venv/bin/python -m pytest tests/servers -m server --no-cov
