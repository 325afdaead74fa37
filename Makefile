# The commands of the README. Each sets up what it needs.
PYTHON ?= python3
VENV := .venv

.PHONY: demo test test-all docs reproduce clean

demo: $(VENV)/demo-ready
	$(VENV)/bin/lookalike fit --out demo --fresh
	$(VENV)/bin/python -m scripts.demo demo
	@echo "To search with your own pictures: $(VENV)/bin/lookalike serve"

test: $(VENV)/test-ready
	scripts/check

# with the tests that take minutes each (docs/reliability.md)
test-all: $(VENV)/test-ready
	scripts/check --all

# docs/reproduction.md: continues where it was stopped
WORKERS ?= 2
reproduce: $(VENV)/test-ready
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[tune]'
	$(VENV)/bin/python -m papers reproduce $(if $(CUB),--cub200 $(CUB)) $(if $(CARS),--cars196 $(CARS)) $(if $(OMNIGLOT),--omniglot $(OMNIGLOT)) --workers $(WORKERS)

docs: $(VENV)/docs-ready
	$(VENV)/bin/sphinx-build -W -q -b html docs build/site
	@echo "Open build/site/index.html"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[serve]'
	touch $@

$(VENV)/test-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,bench,faiss,pretrained,export,hf,log,serve,cluster,docs]'
	touch $@

$(VENV)/docs-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs,serve]'
	touch $@

clean:
	rm -rf $(VENV) demo build dist .pytest_cache .mypy_cache .ruff_cache
