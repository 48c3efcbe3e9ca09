# `make demo` and `make test` work on a fresh clone with only Python 3.11, pip and make: the
# targets create .venv themselves. The two stamps record what is installed in it; both are
# renewed when pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
RUN := $(VENV)/.installed-run
DEV := $(VENV)/.installed-dev
JOBS ?= 2

.PHONY: help demo test test-all coverage lint format bench docs clean distclean

help:
	@echo "make demo      train a small network on the digits that ship with the package"
	@echo "make test      the tests, without the long ones"
	@echo "make test-all  every test; writes docs/results/<date>-test-all.md"
	@echo "make coverage  compare every operator with PyTorch; writes docs/coverage.md"
	@echo "make lint      ruff and mypy"
	@echo "make format    let ruff rewrite the files"
	@echo "make bench     compare with PyTorch on this machine"
	@echo "make docs      generate docs/settings.md, docs/torch.md and docs/reference/"
	@echo "make clean     remove caches and build products (distclean: also .venv)"

$(PY):
	$(PYTHON) -m venv $(VENV)

$(RUN): pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(DEV): pyproject.toml | $(PY)
	$(PY) -m pip install --quiet --disable-pip-version-check -e '.[test,dev]'
	@touch $@

demo: $(RUN)
	$(PY) -m monograph.cli.main demo $(ARGS)

test: $(DEV)
	$(PY) -m pytest -n $(JOBS) -q $(ARGS)

test-all: $(DEV)
	$(PY) tools/test_all.py --jobs $(JOBS)

coverage: $(DEV)
	$(PY) tools/coverage.py --write --jobs $(JOBS)

lint: $(DEV)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: $(DEV)
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

bench: $(DEV)
	$(PY) -m bench $(ARGS)

docs: $(RUN)
	$(PY) tools/make_reference.py

clean:
	rm -rf build dist *.egg-info .test-all .pytest_cache .hypothesis .mypy_cache .ruff_cache docs/reference
	find monograph tests tools bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

distclean: clean
	rm -rf $(VENV)
