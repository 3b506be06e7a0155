# From a clone with Python 3.11+ and make, every target sets itself up in an environment of its own.
#
#   PYTHON=…   the interpreter (default: what tools/find_python finds)
#   ENV=…      the environment's folder (default: .venv)
#   SEED=…     repeat a run: property tests and the order of sets (every run prints its seed)
#   ARGS=…     more arguments for pytest, e.g. make check ARGS='-k fence'
#   COVER=1    measure the coverage of every test and hold it to its floors (`make test-all` does)

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo shots demo-picture test check lint types tests test-all bench bench-worker bench-worker-profile peers proofs prove sabotage format diagram life acceptance commands rest lock clean env force

ENV ?= .venv
BIN := $(ENV)/bin
READY := $(ENV)/.ready
VERSIONS := 3.11 3.12 3.13

VERSION_OF = $(shell $(1) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)

ifndef PYTHON
# Looked for only when an environment must be made.
PYTHON = $(eval PYTHON := $$(shell sh tools/find_python))$(PYTHON)
else ifneq ($(call VERSION_OF,$(PYTHON)),$(call VERSION_OF,$(BIN)/python))
# A Python named by hand is the one to use, also when there is an environment of another.
$(READY): force
endif

# The tests start hundreds of processes: each would compile again what the first has imported.
unexport PYTHONDONTWRITEBYTECODE

SEED ?= $(shell od -An -N4 -tu4 /dev/urandom | tr -d ' ')

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

# ── gates ────────────────────────────────────────────────────────────────────

test: lint types tests ## the whole gate: lint, types, every test, coverage of the model

check: lint types ## the fast gate: lint, types, tests of the model and the history checker, doctests
	$(BIN)/pytest -q tests/model tests/lab/history tests/lab/test_ledger.py src $(ARGS)

lint: $(READY) ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY) ## mypy strict on everything, pyright strict on the public face
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python

tests: export COVERAGE_FILE = .coverage$(patsubst .venv%,%,$(notdir $(ENV)))
tests: export PYTHONHASHSEED = $(SEED)
tests: SEED := $(SEED)
tests: PYTEST = $(BIN)/pytest --hypothesis-seed=$(SEED)
tests: COVERED = fairlane.model fairlane.lab.history fairlane.lab.ledger
tests: COVERING = tests/model tests/lab/history tests/lab/test_ledger.py src/fairlane/model src/fairlane/lab/history src/fairlane/lab/ledger.py
tests: $(READY) ## every test; those of the model and the history checker must cover them to the last branch
	@sh tools/find_chromium --install > /dev/null || true
	@echo "seed $(SEED) (repeat with: make $@ SEED=$(SEED))"
	$(PYTEST) -n 2 $(COVERED:%=--cov=%) --cov-report= $(COVERING) $(ARGS)
	@echo "coverage of the model and the history checker, lines and branches (must be 100 %):"
	@$(BIN)/coverage report --fail-under=100
	$(PYTEST) -n 3 $(if $(COVER),--cov=fairlane --cov-append --cov-report=) $(COVERING:%=--ignore=%) $(ARGS)
ifdef COVER
	@$(BIN)/coverage json --quiet -o $(COVERAGE_FILE)_report.json
	$(BIN)/python -m tools.coverage_floors $(COVERAGE_FILE)_report.json
endif

test-all: ## the tests on each Python of 3.11, 3.12, 3.13 that this machine has, and the coverage floors
	@passed=; failed=; missing=; \
	for version in $(VERSIONS); do \
	    if python=$$(sh tools/find_python $$version 2>/dev/null); then \
	        echo "── Python $$version: $$python"; \
	        if $(MAKE) --no-print-directory tests COVER=1 ENV=.venv-$$version PYTHON="$$python"; \
	        then passed="$$passed $$version"; else failed="$$failed $$version"; fi; \
	    else missing="$$missing $$version"; fi; \
	done; \
	echo "passed:$${passed:- none}   failed:$${failed:- none}   not found:$${missing:- none}"; \
	[ -z "$$failed" ] && [ -n "$$passed" ]

# ── to look at ───────────────────────────────────────────────────────────────

demo: $(READY) ## a noisy neighbour and quiet tenants, fairly and first in, first out; WEB=1 with the dashboard open
	$(BIN)/python -m fairlane demo $(if $(WEB),--web) $(ARGS)

shots: $(READY) ## take the pictures of all pages of the dashboard, light and dark, into docs/shots
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	    FAIRLANE_URL="sqlite:///$$folder/fairlane.db" FAIRLANE_WEB__RATE=none $(BIN)/python -m tests.browser.shots

demo-picture: $(READY) ## run the demo and draw both of its runs into docs/demo.svg
	$(BIN)/python -m fairlane demo --svg docs/demo.svg $(ARGS)

bench: $(READY) ## what a store costs through its contract; ARGS='--help' shows the options
	$(BIN)/python -m benchmarks.contract $(ARGS)

bench-worker: $(READY) ## what a worker costs beside its jobs: idling, memory; ARGS='--help' shows the options
	$(BIN)/python -m benchmarks.worker $(ARGS)

bench-worker-profile: $(READY) ## where one job's time goes in a worker; ARGS='--write' makes the page of it
	$(BIN)/python -m benchmarks.worker_profile $(ARGS)

peers: $(READY) ## other Python job queues beside Fairlane, some ten minutes; ARGS='--help' shows the options
	$(BIN)/python -m benchmarks.peers $(ARGS)

proofs: $(READY) ## measure what docs/proofs shows; STORE=postgres or redis, ONLY=fairness for one page, ARGS='--render' for none
	$(BIN)/python -m tools.proofs $(if $(STORE),--store $(STORE)) $(if $(ONLY),--only $(ONLY)) $(ARGS)

prove: $(READY) ## faults on real stores, an hour of them, added up in docs/proofs; ARGS='--minutes 10 --only worker-kill'
	$(BIN)/python -m tests.campaigns $(ARGS)

sabotage: $(READY) ## break each promise, one at a time, and see its test go red; ARGS='-k fence' tries some
	$(BIN)/python -m tools.sabotage $(ARGS)

# ── upkeep of the tree ───────────────────────────────────────────────────────

format: $(READY) ## let ruff rewrite what it can
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

diagram: $(READY) ## write what is generated in docs: the state diagram, the sequence diagram, the configuration keys
	$(BIN)/python tools/state_diagram.py > docs/reference/state-diagram.md
	$(BIN)/python tools/configuration_page.py
	$(BIN)/python -m tools.sequence_diagram

life: $(READY) ## write the files of a job's life on each store into docs/explanation/life-of-a-job.md
	$(BIN)/python -m tools.life_files

acceptance: $(READY) ## write docs/reference/acceptance.md from the rows and their tests
	$(BIN)/python -m tools.acceptance > docs/reference/acceptance.md

commands: $(READY) ## write docs/reference/command-line.md from the commands themselves
	$(BIN)/python -m tools.command_line > docs/reference/command-line.md

rest: $(READY) ## write docs/reference/rest.md from the endpoints themselves
	$(BIN)/python -m tools.rest_page $(ARGS)

lock: $(READY) ## pin the newest versions of the development tools in requirements/dev.txt
	$(BIN)/uv pip compile --quiet --universal --upgrade --no-header --no-annotate --no-emit-index-url \
	    --python-version 3.11 --group dev --output-file requirements/dev.txt pyproject.toml

clean: ## remove environments, caches and build results
	rm -rf .venv .venv-* .peers .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage* dist build
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
	find src -name '*.egg-info' -type d -prune -exec rm -rf {} +

env: $(READY) ## make the environment and nothing else

# Done again only when what it installs has changed. An environment of another Python is replaced.
$(READY): pyproject.toml requirements/dev.txt
	@[ -n "$(call VERSION_OF,$(PYTHON))" ] || { echo "Fairlane needs Python 3.11 or newer with venv and ensurepip" >&2; exit 1; }
	@[ "$(call VERSION_OF,$(BIN)/python)" = "$(call VERSION_OF,$(PYTHON))" ] \
	    || { set -x; $(PYTHON) -m venv --clear $(ENV); }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep '^uv==' requirements/dev.txt)"
	$(BIN)/uv pip install --quiet --python $(BIN)/python -r requirements/dev.txt -e . \
	    || { echo "uv could not; trying pip, which reads settings of its own" >&2; \
	         $(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements/dev.txt -e .; }
	@touch $@
