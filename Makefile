# Everything here works on a machine with nothing but Python 3.11 or newer and make.
# Another interpreter:      make test PYTHON=python3.12
# More arguments to pytest: make test PYTEST_ARGS="-k fisher -x"

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKERS ?= 2
PYTEST_ARGS ?=

# One run collects the tests and the examples in the docstrings of src.
# Workers that each start as many BLAS threads as there are cores would only wait for each other.
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --doctest-modules

# Markers of tests that a bare machine skips (tests/needs.py); REQUIRE=torch,data stops where one of
# them is not met.
MARKED := torch or data or weights or torchvision or timm or browser or axe
REQUIRE ?=

# A part that calls every direct dependency within a minute or two, for a run at the lower bounds.
FAST := $(addprefix tests/,mkl/balls/test_balls.py benchmarks/test_peers.py detector \
	cli/test_commands.py datasets docs/test_docstrings.py estimators/test_fisher.py \
	estimators/test_table_columns.py experiments/test_features.py explain/test_displays.py \
	test_kernels.py files mkl/problems/test_fisher.py report mkl/solvers/test_registry.py operators tables \
	views/test_views.py test_package.py)

# $(call phase,name,command): run a command, say how long it took, keep its exit status.
define phase
@echo "== $(1)"; start=$$(date +%s); status=0; { $(2); } || status=$$?; \
echo "== $(1): $$(( $$(date +%s) - start )) s"; exit $$status
endef

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-all test-marked test-fast lint format bench bench-joint bench-scale bench-gpu bench-decisions arena alarms fuzz soak grid reproduce reproduce-quick docs browser-tools package clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' Makefile

# Two stamps: the demo needs the library alone, the rest needs the tools too.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "kernull needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.stamp-base: pyproject.toml | $(BIN)/python
	$(call phase,install,$(PIP) install -q -e ".[plot]")
	@touch $@

$(VENV)/.stamp-dev: pyproject.toml | $(BIN)/python
	$(call phase,install with tools,$(PIP) install -q -e ".[dev]")
	@touch $(VENV)/.stamp-base $@

setup: $(VENV)/.stamp-dev  ## create .venv and install kernull with its tools (once per pyproject.toml)

demo: $(VENV)/.stamp-base  ## run the demo
	$(BIN)/python examples/demo.py

test: setup lint  ## lint, then the tests and doctests (without those marked slow)
	$(call phase,pytest,$(PYTEST) -m "not slow" $(PYTEST_ARGS) tests src experiments benchmarks/peers)

test-all: setup lint  ## the same with the slow tests
	$(call phase,pytest,$(PYTEST) $(PYTEST_ARGS) tests src experiments benchmarks/peers)

test-marked: setup  ## only the tests that need torch, data, networks or a browser
	$(call phase,marked tests,$(PYTEST) -m "($(MARKED)) and not slow" --require="$(REQUIRE)" $(PYTEST_ARGS) tests src experiments benchmarks/peers)

# Installs nothing: it is for environments that were made with care. Warnings are no errors here:
# old versions of packages warn of each other.
test-fast:  ## a small part of the tests, in the environment VENV as it is
	$(call phase,fast tests,$(PYTEST) -m "not slow" -W default $(PYTEST_ARGS) $(FAST))

lint: setup  ## ruff, mypy and the import layers; all of them block
	$(call phase,ruff check,$(BIN)/ruff check .)
	$(call phase,ruff format,$(BIN)/ruff format --check .)
	$(call phase,mypy,$(BIN)/mypy)
	$(call phase,import layers,$(BIN)/lint-imports --no-cache --no-logo)

format: setup  ## format the code and fix what can be fixed
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: setup  ## ratios against peers and floors
	$(BIN)/python -m benchmarks.core
	$(BIN)/python -m benchmarks.fits
	$(BIN)/python -m benchmarks.methods

bench-joint: setup  ## enrolment and joint weights (needs KERNULL_DATA)
	$(BIN)/python -m benchmarks.joint

bench-scale: setup  ## tiles, memory and a Dask cluster on this machine
	$(BIN)/python -m benchmarks.scale

bench-gpu: setup  ## one GPU (needs CUDA and torch)
	$(BIN)/python -m benchmarks.gpu

arena: setup  ## every method and its peers on every problem, resumable (needs KERNULL_DATA)
	$(BIN)/python -m benchmarks.arena --jobs 2

alarms: setup  ## realised false alarms on ninety kinds of tables, under 20 minutes on two cores
	$(BIN)/python -m benchmarks.alarms --jobs $(WORKERS)

bench-decisions: setup  ## noise views, broken views, far rows, units, unclean rows: the default judged
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.decisions --jobs $(WORKERS)

# SEED is the time unless given; REQUIRE=models,pages (or all) stops where a target cannot run.
fuzz: setup  ## hostile model files, tables (text, Parquet, Excel) and pages, for MINUTES (10)
	$(call phase,fuzz,$(BIN)/python -m benchmarks.fuzz --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED)) --require="$(REQUIRE)")

soak: setup  ## eight threads of everything for a minute, then ten minutes of kills and restarts
	$(call phase,threads,$(BIN)/python -m benchmarks.threads)
	$(call phase,soak,$(BIN)/python -m benchmarks.soak)

grid: setup  ## the 1,701-cell check
	$(BIN)/python -m benchmarks.delft_grid

$(VENV)/.stamp-docs: pyproject.toml | $(VENV)/.stamp-dev
	$(call phase,install for the docs,$(PIP) install -q -e ".[docs]")
	@touch $@

docs: setup $(VENV)/.stamp-docs  ## build the documentation into docs/_build/html; warnings are errors
	$(call phase,docs,$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html)

browser-tools: setup  ## axe-core from npm, for the accessibility test of the report
	npm install --no-audit --no-fund --prefix $(VENV)/axe axe-core@4

package: setup  ## wheel and sdist, each installed into an empty environment and tried
	$(call phase,package,$(BIN)/python -m pytest -m slow tests/test_packaging.py)

reproduce-quick: setup  ## every experiment of the paper in small, under ten minutes on two cores
	$(call phase,reproduce,$(BIN)/python -m experiments all --quick --jobs $(WORKERS) --out out/reproduce)

reproduce: setup  ## the experiments of the paper in full; hours, resumes where it was stopped
	$(call phase,reproduce,$(BIN)/python -m experiments all --jobs $(WORKERS) --out out/reproduce)

clean:  ## remove .venv, builds and caches
	rm -rf $(VENV) build dist docs/_build docs/auto_examples docs/generated out results-cache demo .hypothesis .pytest_cache .ruff_cache .mypy_cache .import_linter_cache
	find src tests benchmarks experiments -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
