# make install | demo | test | test-fast | test-exhaustive | test-machines | test-slow | check | bench | attack | screenshots | browser | programs | helm | lock | release | clean
PYTHON := .venv/bin/python
BIN := .venv/bin
TEMPLATES = $(shell git ls-files '*.html')
BENCHMARKS = $(basename $(notdir $(wildcard tests/benchmarks/bench_*.py)))
INSTALLED := .venv/.installed
MINUTES := 6
# Two more than the cores of CI: many tests wait for servers that start or for a browser. Six take longer.
WORKERS := 4
# What `make test` may take, in rounds of the calibration loop of tests/support/cpu.py, measured while it runs. The last whole run
# took 151,000; rounds differ more between machines and hours than tests do. A run fails above a quarter more. The goal is 60,000.
BUDGET := 180000
CHECK_BUDGET :=
# The share of the generated examples that are tried; 1 for all.
EXAMPLES := 0.25
TESTS = $(BIN)/pytest --forks=$(WORKERS)
EVERYDAY := not exhaustive and not machines
# Other files are not even read: collecting all takes twice as long. Those of tests/outside are collected where they can run.
WITH_MARK = tests/outside $(shell grep -rlE '$(1)' --include='test_*.py' --exclude-dir=outside tests | sort)

# Otherwise each server that a test starts would compile all modules again, where the environment forbids keeping them.
export PYTHONDONTWRITEBYTECODE :=

# As production runs it, with nothing but HTTPS said.
PRODUCTION := env -u FLAGADMIN_DEBUG FLAGADMIN_HTTPS=1

.DEFAULT_GOAL := help
.PHONY: help docs install browser programs helm demo test test-fast test-exhaustive test-machines test-slow check check-style check-templates check-imports check-types \
	check-django check-shape bench attack screenshots lock release clean

help:
	@echo "make demo         install everything, fill an installation, serve it on 127.0.0.1:8000 (PORT=...)"
	@echo "make install      make .venv with everything for running, testing and checking"
	@echo "make test         test the whole behavior (browser tests need Chromium: make browser;"
	@echo "                  others nginx and Node: make programs)"
	@echo "make test-fast    run the tests that need neither a browser nor processes of their own"
	@echo "make test-exhaustive  try every operation, page, recorded case, race, upgrade, page of the documentation and deployment,"
	@echo "                  and generated examples (EXAMPLES=1 for all)"
	@echo "make test-machines    test containers, and pairs of database servers that stand for machines"
	@echo "make test-slow    run make test, and name the 30 tests that take most CPU"
	@echo "make check        formatting, lint, types, import contracts, migrations, templates, schema, shape"
	@echo "make bench        measure, beside the floor each figure cannot pass"
	@echo "make attack       attack a server of its own for 15 minutes (MINUTES=6 and what takes its own time), and tell what held"
	@echo "make screenshots  take pictures of every page, light and dark"
	@echo "make lock         pin what pyproject.toml and requirements/dev.in ask for in requirements/*.txt"
	@echo "make docs         build the documentation as a site in build/docs/"
	@echo "make release      build the package, what the container image is made from, bill, provenance and checksums in dist/"
	@echo "make clean        remove .venv and caches; data stay"

install: $(INSTALLED)

$(INSTALLED): requirements/dev.txt requirements/install.sh
	@sh requirements/install.sh
	@touch $@

browser:
	@sh requirements/browser.sh

programs:
	@sh requirements/programs.sh

helm:
	@sh requirements/programs.sh helm

demo: install
	$(PYTHON) manage.py demo

test: install
	$(TESTS) --cpu-budget=$(BUDGET) $(if $(CHECK_BUDGET),--check-budget) -m "$(EVERYDAY)"

test-fast: install
	$(TESTS) -m "$(EVERYDAY) and not browser and not processes"

test-exhaustive: install
	FLAGADMIN_EXAMPLES=$(EXAMPLES) $(TESTS) -m "exhaustive and not machines" $(call WITH_MARK,mark.exhaustive|first_every_day)

test-machines: install
	$(TESTS) -m machines $(call WITH_MARK,mark.machines)

test-slow: install
	$(TESTS) --dearest=30 -m "$(EVERYDAY)"

check: install
	@$(MAKE) $(if $(findstring jobserver,$(MAKEFLAGS)),,--jobs=2) --output-sync=target --no-print-directory check-types check-django check-shape check-imports check-templates check-style

check-style: install
	$(BIN)/ruff format --check
	$(BIN)/ruff check

check-templates: install
	@$(BIN)/djade --target-version 5.2 --check $(TEMPLATES)
	@$(BIN)/djhtml --check $(TEMPLATES)

check-imports: install
	$(BIN)/lint-imports

check-types: install
	$(BIN)/mypy

check-django: install
	$(PYTHON) manage.py makemigrations --check --dry-run
	$(PRODUCTION) $(PYTHON) manage.py check --deploy --fail-level WARNING
	$(PYTHON) manage.py spectacular --validate --fail-on-warn --file /dev/null

check-shape: install
	$(BIN)/pytest -q -rs tests/shape

bench: install
	@for name in $(BENCHMARKS); do echo "== $$name"; $(PYTHON) -m tests.benchmarks.$$name || exit 1; done

attack: install
	$(PYTHON) -m tests.attack --minutes $(MINUTES)

screenshots: install
	$(PYTHON) -m tests.browser.screenshots

lock: install
	cd requirements && $(CURDIR)/.venv/bin/uv pip compile --quiet --no-header --universal \
		--python-version 3.11 --generate-hashes ../pyproject.toml --output-file run.txt
	cd requirements && $(CURDIR)/.venv/bin/uv pip compile --quiet --no-header --universal \
		--python-version 3.11 --generate-hashes --constraints run.txt --extra tracing --extra experiments --extra saml ../pyproject.toml dev.in --output-file dev.txt

docs: install
	$(PYTHON) -m sphinx -q -W -n -c docs/site . build/docs

release: install
	@sh deploy/release.sh

clean:
	rm -rf .venv .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis test-results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
