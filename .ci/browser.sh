#!/usr/bin/env bash
# Install Chromium and a Chinese font from Debian where they are missing; elsewhere say what is needed.
set -euo pipefail
if command -v chromium >/dev/null && fc-list :lang=zh 2>/dev/null | grep -q .; then exit 0; fi
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  echo "the browser tests need chromium and a Chinese font (Debian: chromium fonts-noto-cjk)" >&2
  exit 2
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk fontconfig >/dev/null
