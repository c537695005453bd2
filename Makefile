# Everything a user or a developer types. The environment is made when needed, and again only when what it is made from changed.
VENV ?= .venv
BIN = $(VENV)/bin
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
PIP = $(BIN)/python -m pip --disable-pip-version-check -qq
WORKERS ?= 2
FRAMEWORKS = $(VENV)/frameworks
NNI = $(VENV)/nni
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-annotate --custom-compile-command "make lock"

# What Python compiled stays for the next of the many processes of a check or of a test.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test engines frameworks check lint format docs bench fuzz large soak lock wheel clean

help: ## what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.server ## a job of two trainers, from nothing to its results
	@PATH="$(abspath $(BIN)):$$PATH" sh tools/demo.sh

# The tests of a file share a worker, and so the server that many a file starts once. In their order, since by the
# number of tests, as is usual, the longest would be last.
test: $(VENV)/.dev engines frameworks ## every test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(TESTS)

engines: ## install the engines that tests use (PostgreSQL, Slurm, HDFS, Chromium), where root may
	@VENV=$(VENV) sh tools/engines.sh

frameworks: $(FRAMEWORKS)/.made ## install what jobs of the tests train with (PaddlePaddle, PyTorch, TensorFlow, JAX)

check: lint ## what lint looks at, and the tests of the architecture and of the docs
	$(BIN)/python -m pytest -q tests/architecture tests/docs

lint: $(VENV)/.dev ## format, rules, types, direction of imports, generated docs
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/python tools/reference.py --check

format: $(VENV)/.dev ## make the code look as `make check` wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.dev ## write the generated pages of docs/ again
	$(BIN)/python tools/reference.py

bench: $(VENV)/.dev ## measure, and write the tables into docs/benchmarks.md
	for bench in start jobs queued transfer pfs webhdfs environments recordio plsc; do $(BIN)/python bench/$$bench.py --write || exit 1; done

fuzz: $(VENV)/.dev ## ten thousand made-up calls with each kind of credential, and as many bent uploads and logs
	FUZZ_CALLS=10000 $(BIN)/python -m pytest -q -n $(WORKERS) tests/hostile

large: $(VENV)/.dev engines ## the contract of stores at full size: 100,000 files and 10 GiB, in a bucket too
	LARGE_STORES=1 $(BIN)/python -m pytest -q tests/contract/test_files_stores.py -k "many_files or large_file"

soak: $(VENV)/.dev ## an hour of jobs of every kind of end, then random faults: memory and open files must stay flat
	$(BIN)/python bench/soak.py --write

lock: $(VENV)/.dev ## renew requirements/ from pyproject.toml
	$(COMPILE) pyproject.toml --upgrade --extra server --extra dev --group build --output-file requirements/dev.txt
	$(COMPILE) pyproject.toml --constraints requirements/dev.txt --extra server --group build \
		--output-file requirements/server.txt
	$(COMPILE) --upgrade --group pyproject.toml:frameworks --output-file requirements/frameworks.txt
	$(COMPILE) --upgrade --group pyproject.toml:nni --output-file requirements/nni.txt

wheel: $(VENV)/.dev ## dist/: what `pip install` is given
	$(BIN)/python -m hatchling build -t wheel

clean: ## forget the environment and everything built
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find src tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1; }
	@echo "making $(VENV) with $(PYTHON) …"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.server: requirements/server.txt pyproject.toml | $(BIN)/python
	@echo "installing what requirements/server.txt pins (about half a minute) …"
	@$(PIP) install --no-deps --require-hashes -r requirements/server.txt
	@$(PIP) install --no-deps --no-build-isolation --editable '.[server]'
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml | $(BIN)/python
	@echo "installing what requirements/dev.txt pins (about a minute) …"
	@$(PIP) install --no-deps --require-hashes -r requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable '.[server,dev]'
	@touch $@ $(VENV)/.server

# A Python of its own that jobs of the tests are given as the machine's, so that they find what they need installed.
$(FRAMEWORKS)/.made: requirements/frameworks.txt | $(VENV)/.dev
	@echo "installing what requirements/frameworks.txt pins (3 GB, about a minute) …"
	@$(BIN)/python -m venv --clear $(FRAMEWORKS)
	@$(BIN)/uv pip install --quiet --no-deps --require-hashes --python $(FRAMEWORKS)/bin/python -r requirements/frameworks.txt
	@touch $@

# A client of OpenPAI that needs older packages than ours; its own start fails now and then, so its test is run on request.
$(NNI)/.made: requirements/nni.txt | $(VENV)/.dev
	@echo "installing what requirements/nni.txt pins (200 MB) …"
	@$(BIN)/python -m venv --clear $(NNI)
	@$(BIN)/uv pip install --quiet --compile-bytecode --no-deps --require-hashes --python $(NNI)/bin/python -r requirements/nni.txt
	@touch $@
