# The one door. Every target sets up .venv first (once), with only Python and pip on the machine.
PYTHON ?= python3
BIN := .venv/bin
LAB := $(BIN)/counterfoil-lab
MAKEFLAGS += --no-print-directory

.DEFAULT_GOAL := help
.PHONY: help install demo test check bench nightly sabotaged fix pins

help:
	@echo "make install   set up .venv from the hashed requirement files"
	@echo "make demo      one agent, three accidents, with and without receipts (under a minute after the set-up)"
	@echo "make test      the whole test suite"
	@echo "make check     lint, types, import direction, full coverage of domain and plans"
	@echo "make bench     what a receipt costs on this machine"
	@echo "make nightly   the full figures (long)"
	@echo "make sabotaged ten rules turned off, and each noticed by three commands"
	@echo "make fix       let ruff repair and format what it can"
	@echo "make pins      resolve the requirement files anew"

install:
	@PYTHON="$(PYTHON)" scripts/setup.sh

demo: install
	@$(LAB) demo

test: install
	@scripts/test.sh

check: install
	@mkdir -p .cache
	@echo "ruff: lint and format"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@echo "mypy --strict src"
	@$(BIN)/mypy --no-error-summary
	@echo "import-linter: direction and purity"
	@$(BIN)/lint-imports --no-cache > .cache/imports.txt || (cat .cache/imports.txt; exit 1)
	@echo "coverage: every branch of domain and plans, by tests/unit and tests/property alone"
	@$(BIN)/coverage run -m pytest tests/unit tests/property --quiet --no-header
	@$(BIN)/coverage report
	@echo "check: all good"

bench: install
	@$(LAB) bench --store sqlite

# Exim comes with the system, or not: where it is missing the figures say nothing of it, and this says so.
EXIM = test -x /usr/sbin/exim4 && echo ,exim || echo "exim4 is not installed: nothing is certified before exim" >&2
REAL = moto,smtp,postgres,git,radicale$(shell $(EXIM))

nightly: install
	@$(LAB) demo --json
	@$(LAB) kill-loop --operations 200 --kills 30 --json
	@$(LAB) approvals --json
	@for seed in 1 2 3 4 5 6 7 8 9 10; do $(LAB) simulate --operations 100000 --seed $$seed --json || exit 1; done
	@$(LAB) matrix --mutants --json
	@$(LAB) exhaust --faults 1 --json
	@$(LAB) exhaust --faults 2 --most 30000 --json
	@$(LAB) mutants --tier full --json
	@$(BIN)/python scripts/mutate.py --mutations 300
	@$(LAB) images --images 100000 --json
	@$(LAB) chaos --kills 200 --json
	@$(LAB) chaos --store postgresql --kills 100 --restarts 10 --commit-cuts 100 --json
	@$(LAB) chaos --store postgresql --pooler --kills 50 --restarts 10 --commit-cuts 50 --json
	@$(LAB) certify --json -- $(BIN)/python examples/certify/guarded.py
	@$(LAB) certify --real $(REAL) --json
	@$(MAKE) sabotaged
	@COUNTERFOIL_NIGHTLY=1 $(BIN)/pytest --timeout=3600 tests/property/test_decisions_machine.py \
		tests/property/test_decisions_walks.py tests/integration/store tests/integration/test_leaks.py
	@$(LAB) bench --store sqlite --peers --growth 1000000 --json
	@$(LAB) bench --store postgresql --peers --growth 1000000 --json

# A rule that is off must be noticed by each of three commands: exit code 1 and no other, and a report that says so.
TEN = $(shell $(BIN)/python -c "from counterfoil.lab.sabotage import TEN; print(*sorted(TEN))")
SAID = import json; said = json.load(open(".cache/sabotaged.json")); assert said["ok"] is False and "error" not in said
noticed = names="$(TEN)"; test -n "$$names" || { echo "nothing says what to turn off"; exit 1; }; \
		for mutant in $$names; do \
		$(LAB) $(1) --sabotage $$mutant --json > .cache/sabotaged.json; \
		test $$? -eq 1 && $(BIN)/python -c '$(SAID)' || { echo "$(1): $$mutant was not noticed"; exit 1; }; done

sabotaged: install
	@mkdir -p .cache
	@$(call noticed,simulate --operations 1000)
	@$(call noticed,kill-loop --operations 40 --kills 8)
	@$(call noticed,chaos --kills 30)

fix: install
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format --quiet .

pins:
	@PYTHON="$(PYTHON)" scripts/pins.sh
