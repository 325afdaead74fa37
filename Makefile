# The two commands of the README. Both set everything up by themselves.
PYTHON ?= python3
VENV := .venv

.PHONY: demo test clean

demo: $(VENV)/demo-ready
	$(VENV)/bin/lookalike fit --out demo --fresh
	rm -rf demo/unseen.index
	$(VENV)/bin/lookalike index demo/model demo --out demo/unseen.index
	$(VENV)/bin/lookalike search demo/unseen.index --first --k 5 --page demo/search.html
	@echo "serve it, with a page to search on: $(VENV)/bin/lookalike serve"

test: $(VENV)/test-ready
	scripts/check

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[serve]'
	touch $@

$(VENV)/test-ready: $(VENV)/bin/python pyproject.toml constraints.txt
	$(VENV)/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,bench,faiss,pretrained,export,log,serve]'
	touch $@

clean:
	rm -rf $(VENV) demo build dist .pytest_cache .mypy_cache .ruff_cache
