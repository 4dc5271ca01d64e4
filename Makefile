# Everything runs in .venv, made from requirements.lock, so that each machine has the same packages.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
WEIGHTS := packages/omokage-weights

.PHONY: demo test check docs format lock oldest clean
.DEFAULT_GOAL := test

# torch first and alone: asked for by a range, it would bring gigabytes of GPU libraries. It is pinned without a hash, because
# its index offers other builds of one version to other machines (CPU, GPU). All else is checked against the lock.
$(STAMP): pyproject.toml $(WEIGHTS)/pyproject.toml constraints.txt requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt "$$(grep '^torch==' constraints.txt)"
	$(PIP) install --no-deps --require-hashes -r requirements.lock
	$(PIP) install --no-deps --no-build-isolation -e . -e $(WEIGHTS)
	touch $(STAMP)

demo: $(STAMP)  ## anonymize real data and say where the report is
	$(BIN)/omokage demo -o demo --overwrite

check: $(STAMP)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: check  ## every check: style, types, tests, doctests
	$(BIN)/pytest -n auto --dist worksteal

docs: $(STAMP)  ## the site, into site/
	$(BIN)/mkdocs build --strict

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The lock holds every file's hash for every system and Python that we support, without torch and what only torch needs.
lock: $(STAMP)  ## write down the versions that are installed now, and the hashes of their files
	$(BIN)/pip freeze --exclude-editable | grep -v '^omokage' | sed 's/+cpu$$//' > constraints.txt
	$(PIP) install uv
	printf 'hatchling\neditables\n' > $(VENV)/build.in
	echo "torch ; sys_platform == 'none'" > $(VENV)/without-torch.txt
	$(BIN)/uv pip compile --quiet pyproject.toml $(VENV)/build.in --extra dev -c constraints.txt \
		--override $(VENV)/without-torch.txt --universal --python-version 3.11.7 --generate-hashes --no-header --no-annotate \
		-o $(VENV)/all.lock
	awk "/^[A-Za-z0-9]/ { keep = !index(\$$0, \"sys_platform == 'none'\") } keep" $(VENV)/all.lock > requirements.lock

oldest: $(STAMP)  ## find the oldest versions that pyproject.toml allows
	$(PIP) install uv
	$(BIN)/uv pip compile --quiet pyproject.toml --extra pandas --extra report --extra dp --resolution lowest-direct \
		--python-version 3.11.7 --no-header --no-annotate -o $(VENV)/oldest.txt
	(sed -n '/^#/p' constraints-oldest.txt; cat $(VENV)/oldest.txt) > $(VENV)/oldest && mv $(VENV)/oldest constraints-oldest.txt

clean:
	rm -rf $(VENV) demo site .mypy_cache .ruff_cache .pytest_cache
