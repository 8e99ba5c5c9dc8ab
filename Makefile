# make demo      a cellular automaton and a Laplace relaxation on all cores, with pictures
# make test      style, types and tests
# make verify    the slow tests: exhaustive and long ones
# make bench     measure, and store the numbers in benchmarks/results
# make lint      style and types only
# make clean     remove the environment and the caches
# make lock      renew the locked versions (needs uv)
#
# Each sets up what it needs in .venv first. Another Python: make PYTHON=python3.13 ...

PYTHON ?= python3
PYTEST = $(BIN)/python -m pytest
BIN = .venv/bin
LOCKS = pyproject.toml uv.lock requirements.lock requirements-dev.lock scripts/setup_env.py

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test verify bench lint clean lock

help:
	@sed -n 's/^# \{0,1\}//p' Makefile

setup: .venv/.ready-dev

.venv/.ready-run: $(LOCKS)
	@$(PYTHON) scripts/setup_env.py run

.venv/.ready-dev: $(LOCKS)
	@$(PYTHON) scripts/setup_env.py dev

demo: .venv/.ready-run
	$(BIN)/minga run life --set automaton.init=patterns/acorn.rle --set grid.shape='[640, 640]' --set run.steps=20000 --set output.every=2000
	$(BIN)/minga run laplace --set grid.shape='[511, 511]' --set run.steps=40000
	@echo "The pictures are in the run directories named above. Next: $(BIN)/minga --help"

lint: .venv/.ready-dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

# Ranks of the MPI tests need the cores for themselves, so these tests run one after another.
test: lint
	$(PYTEST) -n auto --maxprocesses 8 -m "not slow and not gpu and not mpi"
	$(PYTEST) -m "mpi and not slow and not gpu"

verify: .venv/.ready-dev
	HYPOTHESIS_PROFILE=explore $(PYTEST) -m "slow and not gpu" --timeout 0 -o faulthandler_timeout=0

bench: .venv/.ready-dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

EXPORT = uv export --frozen --quiet --no-emit-project --no-header --no-annotate --format requirements-txt --group build
lock:
	uv lock --upgrade
	$(EXPORT) --output-file requirements.lock
	$(EXPORT) --extra dev --output-file requirements-dev.lock
