# Every target works from a fresh clone: it makes .venv and installs what it needs. Nothing but Python 3.11 or later with venv is required.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# The installed set is stamped with the hash of what asked for it, so that the second time costs nothing.
HASH = $(shell cat $(1) | sha256sum | cut -c1-16)
SERVICE := $(VENV)/.service-$(call HASH,requirements.txt)
TESTS := $(VENV)/.tests-$(call HASH,requirements.txt broker_core/pipeline/requirements.txt tests/requirements.txt tests/compiled.txt)
PYTEST_OPTIONS ?=
# Files beside each other, more than a machine of two processors runs, since many wait; those whose times hold where nothing else runs one by one.
# 5: none of those asked for is there.
PYTEST := $(BIN)/python -m pytest
BESIDE := -n 3 --dist loadfile
OR_NONE := || [ $$? -eq 5 ]
# Of tests that run beside others, here only: a few that failed are run once more by themselves, and both results are told (tests/support/once_more.py).
OR_ONCE_MORE = $(OR_NONE) || $(PYTEST) --once-more
# Tests start hundreds of Python processes: what one has compiled is kept for the others, whatever the surroundings say. Empty: as if it were not there.
export PYTHONDONTWRITEBYTECODE :=
SEEDS ?= 2000
ROUNDS ?= 5

.PHONY: help run node test verify style bench torture simulate matrix levels behaviours screenshots

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(SERVICE) ## run the whole service in the foreground; Ctrl-C drains and stops it
	@exec $(BIN)/python manage.py run

node: $(SERVICE) ## run one more node in the foreground, which stands by for the one that serves
	@exec $(BIN)/python manage.py node

test: $(TESTS) ## what a change must pass, in less than 15 minutes
	$(PYTEST) $(BESIDE) -m "not slow and not alone" $(PYTEST_OPTIONS) $(OR_ONCE_MORE) -m "not slow and not alone" $(PYTEST_OPTIONS)
	$(PYTEST) -m "not slow and alone" $(PYTEST_OPTIONS) $(OR_NONE)

# The kill loop mostly waits, and histories are simulated beside it.
verify: $(TESTS) style ## everything: style, types, all tests with the slow ones, 2,000 simulated seeds, the kill loop
	$(PYTEST) $(BESIDE) -rs -m "not alone" $(PYTEST_OPTIONS) $(OR_NONE)
	$(PYTEST) -rs -m "alone" $(PYTEST_OPTIONS) $(OR_NONE)
	$(MAKE) --no-print-directory --jobs 2 simulate torture

style: $(TESTS) ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/mypy

simulate: $(TESTS) ## seeded histories of engine, STOMP, AMQP and a faulty store (SEEDS=2000)
	$(BIN)/python -m tests.simulation --seeds $(SEEDS)

torture: $(TESTS) ## kill node and database under load, again and again; nothing confirmed may be lost
	$(BIN)/python -m tests.acceptance.torture

matrix: $(TESTS) ## what becomes of a message: delivery modes x destinations x ways to fail, over real processes, compared with what is promised
	$(BIN)/python -m tests.acceptance.matrix

levels: $(TESTS) ## what five levels of reliability keep, failure by failure, over real processes, beside what is promised of them (ROUNDS=5)
	$(BIN)/python -m tests.acceptance.levels --rounds $(ROUNDS)

behaviours: $(TESTS) ## the tests that docs/behaviours.md names, item by item, and no others
	$(BIN)/python -m tests.semantics $(PYTEST_OPTIONS)

screenshots: $(TESTS) ## pictures of every page of the console on realistic traffic; a dozen of them into docs/pictures (TO=folder for the others)
	$(BIN)/python -m tests.pictures $(TO)

bench: $(TESTS) ## measure; the figures of docs/benchmarks.md
	$(BIN)/python -m tests.bench

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed; name one with PYTHON=...")'
	$(PYTHON) -m venv $(VENV)

$(SERVICE): $(BIN)/pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(TESTS): $(SERVICE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r tests/requirements.txt
	@if command -v cc >/dev/null; then $(BIN)/python -m pip install --quiet --disable-pip-version-check -r tests/compiled.txt; \
	 else echo "There is no C compiler: what is in tests/compiled.txt is not installed, and its tests are skipped."; fi
	@touch $@
