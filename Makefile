# Needs only Python 3.11+ and make: every target sets up its own environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --disable-pip-version-check

.PHONY: demo kinetics-tables test test-long test-newest newest-env test-lowest lowest-env docs description golden fuzz crash browser conformance check install lock bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo     run one campaign on real designs, end to end, on this machine"
	@echo "make test     run the tests"
	@echo "make test-long  run the end-to-end tests that take longer: LONG_MINUTES=60 at most, STORY_CAMPAIGNS=12 at once"
	@echo "make test-newest  the fast tests on the newest Python of this machine"
	@echo "make test-lowest  the fast tests with the lowest versions of what the product needs"
	@echo "make fuzz     look for trouble with made-up calls and orders, FUZZ_MINUTES=10 long"
	@echo "make crash    kill and break runs between order and payment: CRASH_SCHEDULES=500, CRASH_MINUTES=60 at most"
	@echo "make browser  click through both of Prefect's user interfaces on a busy machine: BROWSER_LOAD=10"
	@echo "make conformance  the suites of others: MCP, x402, RO-Crate, OpenAPI"
	@echo "make check    lint, types, import rules (what CI runs first)"
	@echo "make install  set up .venv for development (run again after adding a file)"
	@echo "make docs     build the site of docs/ in build/site"
	@echo "make description   copy the description of the service to the lab, and make the tables of docs/reference.md"
	@echo "make kinetics-tables  verdicts and coverage on simulated curves, into docs/kinetics.md: KINETICS_SETS=400 a row"
	@echo "make golden   make the golden archive again, when its format changes or an assay type is added"
	@echo "make lock     resolve requirements.lock again"
	@echo "make bench    each part beside what it replaces, in ten minutes; writes docs/performance.md"

# Where it is set, as in many containers, each process of the tests would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
# The system's certificates, as pip takes them.
export UV_SYSTEM_CERTS = 1

# uv installs the lock several times faster; where it cannot (its index settings are its own), pip does.
define NO_PACKAGES
The packages of requirements.lock could not be installed. Is there a network, and a package index? This shows which one pip asks:
  $(BIN)/python -m pip config list
"conflicting dependencies", "No solution found" and "No matching distribution" above also mean that no index answers, or that it
does not have these versions. With the packages in a folder:
  PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER make install
endef
export NO_PACKAGES

# One environment for everything, from the committed lock; made again when the lock or the project file changes.
$(VENV)/.installed: requirements.lock pyproject.toml lab/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "prefect-assay needs Python 3.11 or newer; choose one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "setting up $(VENV), once: some minutes, mostly for downloads"
	@echo "1 of 4: an environment of $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@echo "2 of 4: uv, which installs several packages at once"
	@$(PIP) --quiet "$$(grep -o '^uv==[^ ]*' requirements.lock)" || true
	@echo "3 of 4: $$(grep -c '^[a-z0-9]' requirements.lock) packages in the versions of requirements.lock"
	@{ test -x $(BIN)/uv && $(BIN)/uv pip install $$(test -t 2 || echo --quiet) --compile-bytecode --python $(BIN)/python -r requirements.lock; } || \
	  { echo "        pip installs them without uv, step by step:"; $(PIP) -r requirements.lock; } || \
	  { echo "$$NO_PACKAGES"; exit 1; }
	@echo "4 of 4: prefect-assay itself and the lab, in $(BIN)"
	@$(PIP) --quiet --no-deps --editable . --config-settings editable_mode=strict
	@$(PIP) --quiet --no-deps --editable lab
	@touch $@

install: requirements.lock
	@rm -f $(VENV)/.installed
	@$(MAKE) --no-print-directory $(VENV)/.installed

demo: $(VENV)/.installed
	@$(BIN)/prefect-assay demo

# Three processes for two cores: the end-to-end tests spend part of their time waiting for each other.
test: $(VENV)/.installed
	@$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder

# What takes too long for every run. After LONG_MINUTES nothing new is begun; LONG_FIRST is the first file.
LONG_MINUTES ?= 60
LONG_FIRST ?= 0
test-long: $(VENV)/.installed
	@ASSAY_TESTS_FIRST=$(LONG_FIRST) ASSAY_TESTS_END=$$(($$(date +%s) + 60 * $(LONG_MINUTES))) \
	  $(BIN)/pytest -m long -n 3 --dist loadfile --no-loadscope-reorder --durations 12

# The fast tests in another environment: the locked versions on the newest Python, or the lowest that pyproject.toml allows.
# TESTS=tests/orders/ledger plays those of some packages. After FAST_MINUTES nothing new is begun; FAST_FIRST is the first file.
TESTS ?=
FAST_MINUTES ?= 60
FAST_FIRST ?= 0
FAST := not e2e and not long and not fuzz and not crash and not browser and not conformance
FAST_CLOCK = ASSAY_TESTS_FIRST=$(FAST_FIRST) ASSAY_TESTS_END=$$(($$(date +%s) + 60 * $(FAST_MINUTES)))
NEWEST ?= $(shell .ci/newest-python)
newest-env: $(VENV)/.installed
	@test -x build/newest-env/bin/python || $(NEWEST) -m venv build/newest-env
	@$(BIN)/uv pip install --quiet --python build/newest-env/bin/python -r requirements.lock
	@$(BIN)/uv pip install --quiet --python build/newest-env/bin/python --no-deps --reinstall-package prefect-assay . \
	  --reinstall-package assay-lab ./lab

test-newest: newest-env
	@echo "fast tests on $(NEWEST)"
	@$(FAST_CLOCK) build/newest-env/bin/python -m pytest -n 3 --dist loadfile -m "$(FAST)" $(TESTS)

# Test tools are the newest that go with those versions.
lowest-env: $(VENV)/.installed
	@test -x build/lowest-env/bin/python || $(PYTHON) -m venv build/lowest-env
	@$(BIN)/uv pip compile --quiet --resolution lowest-direct --no-header --no-annotate --extra all \
	  --output-file build/lowest.txt pyproject.toml lab/pyproject.toml
	@$(BIN)/uv pip compile --quiet --no-header --no-annotate --extra all --group pyproject.toml:test \
	  --group lab/pyproject.toml:test --constraint build/lowest.txt --output-file build/lowest-test.txt \
	  pyproject.toml lab/pyproject.toml
	@$(BIN)/uv pip install --quiet --python build/lowest-env/bin/python -r build/lowest-test.txt
	@$(BIN)/uv pip install --quiet --python build/lowest-env/bin/python --no-deps --reinstall-package prefect-assay . \
	  --reinstall-package assay-lab ./lab

test-lowest: lowest-env
	@$(FAST_CLOCK) build/lowest-env/bin/python -m pytest -n 3 --dist loadfile -m "$(FAST)" $(TESTS)

# Ends on time: the tests of tests/fuzz share the time among themselves.
FUZZ_MINUTES ?= 10
fuzz: $(VENV)/.installed
	@ASSAY_FUZZ_MINUTES=$(FUZZ_MINUTES) $(BIN)/pytest -m fuzz tests/fuzz

# The same seed plays the same schedules. After CRASH_MINUTES nothing new is begun.
CRASH_SCHEDULES ?= 500
CRASH_SEED ?= $(shell date +%s)
CRASH_MINUTES ?= 60
crash: $(VENV)/.installed
	@ASSAY_CRASH_SCHEDULES=$(CRASH_SCHEDULES) ASSAY_CRASH_SEED=$(CRASH_SEED) \
	  ASSAY_CRASH_END=$$(($$(date +%s) + 60 * $(CRASH_MINUTES))) \
	  $(BIN)/pytest -q -m crash -n 2 --maxschedchunk 1 tests/crash tests/stories

# Needs Chromium and the package playwright (docs/developing.md); says what is missing, and passes.
BROWSER_LOAD ?= 10
browser: $(VENV)/.installed
	@ASSAY_BROWSER_LOAD=$(BROWSER_LOAD) $(BIN)/pytest -q -m browser tests/browser

# The suites of others, in an environment of their own; the one of MCP needs Node. What needs none of this is in make test, too.
CONFORMANCE := build/conformance-env
conformance: $(VENV)/.installed
	@test -x $(CONFORMANCE)/bin/python || $(PYTHON) -m venv $(CONFORMANCE)
	@$(CONFORMANCE)/bin/python -m pip install --quiet --disable-pip-version-check \
	  "x402-conformance==1.6.0" "roc-validator==0.13.0"
	@ASSAY_CONFORMANCE_ENV=$(abspath $(CONFORMANCE)) $(BIN)/pytest -q -m "conformance or not conformance" \
	  tests/conformance lab/tests/api/test_schemathesis.py tests/archive/test_archive_ro_crate.py

# What only tests call is dead, except for these: functions for users' code, and hooks of Prefect, httpx, io, pydantic, Jinja,
# uvicorn and MCP.
UNUSED := unused (function|class|method|property)
USED_OUTSIDE := __getattr__,verify,modify,download_quote_pdf,iterate_sequences,iterate_results,iterate_updates,attenuate,$\
  revoke,mint,aload,wait_for_completion,fetch_result,readinto,auth_flow,_without_empty,is_kinetics
USED_OUTSIDE_LAB := http,model_post_init,set_clock,plan,fill,payment_fault,end_payment_faults,webhook_fault,redeliver,end_sessions,$\
  get_client,register_client,load_*,exchange_*,capture_signals

check: $(VENV)/.installed
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports
	@$(BIN)/mypy
	@$(BIN)/pyright
	@$(BIN)/pylint --score=n src/prefect_assay flows tasks blocks deployments
	@$(BIN)/pylint --score=n lab/src/assay_lab
	@cd lab && ../$(BIN)/lint-imports && ../$(BIN)/mypy && ../$(BIN)/pyright
	@$(BIN)/vulture
	@! $(BIN)/vulture --min-confidence 60 --ignore-names "$(USED_OUTSIDE)" src flows tasks blocks deployments | grep -E "$(UNUSED)"
	@! $(BIN)/vulture --min-confidence 60 --ignore-names "$(USED_OUTSIDE_LAB)" lab/src | grep -E "$(UNUSED)"
	@$(BIN)/python .ci/audit.py $(AUDIT)

lock:
	@$(PYTHON) -m venv build/lock-env
	@build/lock-env/bin/python -m pip install --quiet --disable-pip-version-check "uv>=0.5"
	@build/lock-env/bin/uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	  --no-emit-index-url --no-emit-find-links --generate-hashes --all-extras --group pyproject.toml:dev \
	  --group lab/pyproject.toml:test --output-file requirements.lock pyproject.toml lab/pyproject.toml

# The lab's copy of the description of the service, and the tables of the reference.
description: $(VENV)/.installed
	@cp src/prefect_assay/service/openapi.yaml lab/src/assay_lab/api/openapi.yaml
	@cd tests && PYTHONPATH=../lab/tests ../$(BIN)/python -m support.reference ../docs/reference.md

# The site, with its tools in an environment of their own. The reference reads the packages where they are installed.
DOCS := build/docs-env
docs:
	@test -x $(DOCS)/bin/mkdocs || { $(PYTHON) -m venv $(DOCS) && \
	  $(DOCS)/bin/python -m pip install --quiet --disable-pip-version-check "mkdocs-material>=9.6,<10" "mkdocstrings[python]>=0.29,<2"; }
	@rm -rf build/reference && mkdir -p build/reference && cp -r src/prefect_assay build/reference/
	@cp -r flows tasks blocks deployments build/reference/prefect_assay/
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet
	@! grep -rlE '(src|href)="https?://[^"]*\.(js|css|woff2?|png|svg)' build/site --include=*.html || \
	  { echo "these pages need a network to be read"; exit 1; }
	@echo "build/site/index.html"

# Verdicts and coverage on simulated curves, into docs/kinetics.md: so many sets a row.
KINETICS_SETS ?= 400
kinetics-tables: $(VENV)/.installed
	@cd tests && OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 ../$(BIN)/python -m support.kinetics.tables $(KINETICS_SETS) ../docs/kinetics.md

golden: $(VENV)/.installed
	@cd tests && ../$(BIN)/python -m support.golden.make

bench: $(VENV)/.installed
	@$(BIN)/python bench/run.py --write docs/performance.md

clean:
	rm -rf $(VENV) build dist src/*.egg-info lab/build lab/src/*.egg-info
