# Everything runs in a virtual environment of its own, made on first use:
#   make demo        fit a simulated data set and print the summary beside the truth
#   make test        C++ suite and the fast Python tests
#   make test-slow   C++ suite and every Python test
#   make test-cpp    C++ suite, and the seams that Python tests import
#   make sanitize    C++ suite and a fit of every kind under sanitizers (GCC, Linux);
#                    `make sanitize-short` the part of it for every change, some three minutes
#   make coverage    the fast Python tests, with the lines that they never run
#   make fuzz        formulas, options, frames and files made to do harm, for some minutes
#   make torture     kills, interrupts, limits, leaks and all of the above; writes a page
#   make bench       benchmarks
#   make compare     timing of this working tree against another revision, BASE=main
#   make lint        formatting, lints, types and imports;  `make format` rewrites the formatting
#   make docs        run the vignettes, render them to build/docs
#   make clean       remove what was built;  `make distclean` removes the environment too
# Needed: Python >= 3.10 with venv, make, a C++20 compiler.

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
BASE ?= main
SECONDS ?= 300

PY := $(VENV)/bin/python
PIP := $(PY) -m pip install --quiet --disable-pip-version-check
NATIVE := setup.py pyproject.toml $(shell find csrc -type f)
CXX_FILES = $(shell find csrc tests/cpp tests/seams -name '*.cpp' -o -name '*.hpp')
PYTHON_FILES := cstonet tests benchmarks vignettes .ci setup.py

.DELETE_ON_ERROR:
.PHONY: demo test test-slow test-cpp sanitize sanitize-short fuzz torture coverage bench compare lint format docs clean distclean help

help:
	@sed -n 's/^#   //p' Makefile

demo: $(VENV)/installed
	$(PY) -m cstonet demo

test: $(VENV)/installed $(VENV)/test test-cpp
	$(PY) -m pytest -m "not slow"

test-slow: $(VENV)/installed $(VENV)/test $(VENV)/ray test-cpp
	$(PY) -m pytest

test-cpp: $(VENV)/ready
	$(MAKE) --no-print-directory -j$(JOBS) -f tests/cpp/Makefile PY=$(PY)

sanitize sanitize-short: $(VENV)/ready $(VENV)/test
	@JOBS=$(JOBS) $(PY) tests/sanitize/run.py $(if $(filter %-short,$@),--short)

fuzz: $(VENV)/installed $(VENV)/test $(VENV)/fuzz
	$(PY) -m tests.fuzz --seconds $(SECONDS)

torture: $(VENV)/installed $(VENV)/test
	$(PY) benchmarks/torture.py

coverage: $(VENV)/installed $(VENV)/test $(VENV)/coverage test-cpp
	$(PY) -m coverage run -m pytest -q -m "not slow"
	$(PY) -m coverage report

bench: $(VENV)/installed $(VENV)/bench
	@set -e; for script in benchmarks/bench_*.py; do echo "== $$script"; $(PY) $$script; done

compare: $(VENV)/installed
	$(PY) benchmarks/compare.py $(BASE)

lint: $(VENV)/ready $(VENV)/lint $(VENV)/test
	$(PY) -m ruff check $(PYTHON_FILES)
	$(PY) -m ruff format --check $(PYTHON_FILES)
	@$(VENV)/bin/clang-format --dry-run -Werror $(CXX_FILES)
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

format: $(VENV)/ready $(VENV)/lint
	$(PY) -m ruff check --fix-only $(PYTHON_FILES)
	$(PY) -m ruff format $(PYTHON_FILES)
	@$(VENV)/bin/clang-format -i $(CXX_FILES)

docs: $(VENV)/installed $(VENV)/docs
	$(PY) vignettes/render.py build/docs

# The environment with all that is needed to build and to run the package, but not the package.
$(VENV)/ready: pyproject.toml .ci/requirements.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "cstonet needs Python 3.10 or newer; choose one with: make PYTHON=/path/to/python"; exit 1; }
	@echo "Preparing $(VENV) ..."
	@test -x $(PY) || $(PYTHON) -m venv $(VENV)
	@$(PY) .ci/requirements.py build runtime > $(VENV)/requirements.txt
	@$(PIP) -r $(VENV)/requirements.txt
	@touch $@

# Editable, so that only a change of the C++ sources asks for a new build. The build requirements
# are in the environment already: no second download into an isolated one.
$(VENV)/installed: $(VENV)/ready $(NATIVE)
	@echo "Compiling cstonet ..."
	@$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

# One rule for every extra of pyproject.toml that a target above asks for.
$(addprefix $(VENV)/,test lint coverage docs bench ray fuzz): $(VENV)/%: $(VENV)/ready
	@$(PY) .ci/requirements.py $* > $(VENV)/requirements-$*.txt
	@$(PIP) -r $(VENV)/requirements-$*.txt
	@touch $@

clean:
	rm -rf build dist *.egg-info cstonet/*.so $(VENV)/installed
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache .coverage
