# Every target works on a clean clone: it makes .venv and installs what it needs first.
SHELL := /bin/bash
PY := .venv/bin/python
UV := .venv/bin/uv pip
export OMP_NUM_THREADS ?= 1
export PYTHONUTF8 ?= 1

.PHONY: setup demo test test-servers lab bench lint format browser lock newest clean

setup: .venv/.installed

.venv/.installed: pyproject.toml .ci/constraints.txt .ci/bootstrap.txt
	python3 -m venv .venv
	$(PY) -m pip install --quiet --require-hashes -r .ci/bootstrap.txt
	$(UV) install --quiet -p $(PY) --require-hashes -r .ci/constraints.txt
	$(UV) install --quiet -p $(PY) --no-deps --no-build-isolation -e .
	touch $@

demo: setup
	$(PY) -m ragwb demo

lab: setup
	$(PY) -m ragwb lab

lint: setup
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy

format: setup
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

# Chromium and a Chinese font, for the tests that open reports and JupyterLab as a person would.
browser: setup
	bash .ci/browser.sh

# A file of tests stays in one process: what its fixtures start is started once.
test: lint browser
	$(PY) -m pytest -n 2 --dist loadfile --no-loadscope-reorder

# Jobs that start heavy foreign servers, each with a limit of its own.
test-servers: setup
	bash .ci/servers.sh

# Ratios against a peer in the same run; nothing here is asserted by a test.
bench: setup
	$(PY) tests/bench/run.py

# The newest versions that pyproject.toml allows, without the constraints: does everything import?
newest:
	bash .ci/newest.sh

lock: setup
	bash .ci/lock.sh

clean:
	rm -rf .venv dist build .mypy_cache .ruff_cache .hypothesis
