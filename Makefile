# One set-up command (make venv), one test command (make test), one check command (make check).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
# Two workers suit two cores: `make test WORKERS=8` where there are more, WORKERS=0 to debug in one process.
WORKERS ?= 2
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help venv demo test check docs clean

help: ## Print this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

venv: $(STAMP) ## Set up .venv (nothing to do while pyproject.toml and constraints.txt stay the same)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[torch,jax,dev,docs]'
	touch $@

demo: $(STAMP) ## Serve one workload on both backends and compare their tokens
	$(BIN)/python -m warfence demo $(ARGS)

# One thread a library: the lanes bring their own threads, and two workers share the cores.
test: export OMP_NUM_THREADS = 1
# Nearly all of a JAX test is compiling small programs; what they compute and when does not depend on this.
test: export XLA_FLAGS ?= --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false
test: $(STAMP) ## Run every test (ARGS='-k fence' to choose); what needs a GPU skips itself where there is none
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

check: $(STAMP) ## Lint, formatting and types
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: $(STAMP) ## Build the site into docs/_build/html: runs every lesson, checks every internal link; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -E -q -b html docs docs/_build/html

clean: ## Remove the environment, the caches and what a build left
	rm -rf $(VENV) .pytest_cache .hypothesis .ruff_cache .mypy_cache dist build docs/_build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
