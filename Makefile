# make demo   evaluate the shipped sample and write a report
# make test   every check: lint, types, layers, the whole test suite
# make bench  the figures that the README quotes
# make pins   write constraints.txt anew from pyproject.toml

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: demo test check bench pins clean

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

pins: $(VENV)/.installed-dev
	$(BIN)/uv pip compile pyproject.toml --all-extras --universal --python-version 3.10 --no-header --no-annotate --upgrade -o constraints.txt

$(VENV)/bin/python:
	sh tools/make-venv.sh $(PYTHON) $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install -c constraints.txt -e '.[dev]'
	touch $@

.PHONY: chromium
chromium:
	sh tools/get-chromium.sh

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
