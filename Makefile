# Everything runs in .venv, made from constraints.txt, so that each machine has the same packages.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check format lock clean
.DEFAULT_GOAL := test

# torch first and alone: asked for by a range, it would bring gigabytes of GPU libraries.
$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: $(STAMP)  ## anonymize real data and say where the report is
	$(BIN)/omokage demo -o demo --overwrite

check: $(STAMP)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: check  ## every check: style, types, tests, doctests
	$(BIN)/pytest -n auto --dist worksteal

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

lock: $(STAMP)  ## write down the versions that are installed now
	$(BIN)/pip freeze --exclude-editable | grep -v '^omokage' | sed 's/+cpu$$//' > constraints.txt

clean:
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .pytest_cache
