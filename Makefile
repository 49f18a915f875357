.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.calque-setup
COMPILED := $(VENV)/.calque-tests
# Tests side by side, twice as many as a small machine has cores: a third of their time they wait,
# for disks, for JVMs and for peers that say nothing. Workers share their servers.
JOBS ?= 4
# Where quick tests lie; importing the others would take as long as running these.
QUICK := $(wildcard tests/test_*.py tests/values tests/operator tests/ledger tests/store \
  tests/loader/formats tests/loader/run/formats)
# What we measure against has an environment of its own.
PEERS := .cache/peers
# Bytecode is kept, whatever the caller's environment says: Python workers of Spark start faster.
unexport PYTHONDONTWRITEBYTECODE

##@ Start here
.PHONY: help setup demo quick test
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv and install everything from PyPI
$(STAMP): requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	-@$(BIN)/calque doctor --prepare > /dev/null 2>&1
	@touch $@

demo: setup ## Show the main job on real files, within two minutes
	@$(BIN)/calque demo

quick: setup ## Lint, types, layers and the fast tests, within two minutes
	@$(MAKE) --no-print-directory -j2 lint type layers
	$(BIN)/python -m pytest $(QUICK) -m quick -n $(JOBS) --dist worksteal

test: setup ## Lint, types, layers, then every test but the soaks
	@$(MAKE) --no-print-directory -j2 type lint layers $(COMPILED)
	$(BIN)/python -m pytest -m "not soak" -n $(JOBS) --dist loadfile --no-loadscope-reorder

# Else every worker of the first run would compile every test.
$(COMPILED): $(STAMP)
	-@$(BIN)/python -m pytest --collect-only > /dev/null
	@touch $@

##@ Work on it
.PHONY: lint fmt type layers
lint: setup ## Check style and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

fmt: setup ## Format, and mend what can be mended
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

type: setup ## Check types (mypy, strict)
	$(BIN)/mypy

layers: setup ## Check that imports only go down
	$(BIN)/lint-imports

##@ Look closer
.PHONY: bench soak docs clean
bench: setup ## Measure against peers and limits, as ratios of one run
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install -qq --disable-pip-version-check --require-hashes --no-deps -r bench/requirements.lock
	BENCH_PEERS=$(PEERS)/bin/python $(BIN)/python -m bench $(ARGS)

soak: setup ## Run the long tests, and those of properties on new examples
	$(BIN)/python -m pytest -m "soak or hypothesis" --hypothesis-profile "new examples" $(ARGS)

docs: setup ## Build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The pages are in site/. To read and search them: $(BIN)/mkdocs serve, or python3 -m http.server -d site"

clean: ## Remove what was built, .venv included
	rm -rf $(VENV) build dist site demo .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
