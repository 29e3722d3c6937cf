# Needs only Python 3.11+ and make: every target sets up its own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test check install lock bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo     run one campaign on real designs, end to end, on this machine"
	@echo "make test     run the tests"
	@echo "make check    lint, types, import rules (what CI runs first)"
	@echo "make install  set up .venv for development (run again after adding a file)"
	@echo "make lock     resolve requirements.lock again"
	@echo "make bench    side-by-side benchmarks"

# uv installs the lock several times faster; where it cannot (its index settings are its own), pip does.
# One environment for everything, from the committed lock; made again when the lock or the project file changes.
$(VENV)/.installed: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "prefect-assay needs Python 3.11 or newer; choose one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "setting up $(VENV) (once) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) --constraint requirements.lock uv
	@$(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python -r requirements.lock 2>/dev/null || \
	  $(PIP) -r requirements.lock
	@$(PIP) --no-deps --editable . --config-settings editable_mode=strict
	@touch $@

install: requirements.lock
	@rm -f $(VENV)/.installed
	@$(MAKE) --no-print-directory $(VENV)/.installed

demo: $(VENV)/.installed
	@$(BIN)/prefect-assay demo

# Three processes for two cores: the end-to-end tests spend part of their time waiting for each other.
test: $(VENV)/.installed
	@$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

check: $(VENV)/.installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/mypy
	@$(BIN)/pyright

lock:
	@$(PYTHON) -m venv build/lock-env
	@build/lock-env/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.5"
	@build/lock-env/bin/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --all-extras --output-file requirements.lock pyproject.toml

bench: $(VENV)/.installed
	@for file in bench/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) build dist src/*.egg-info
