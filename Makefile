# make demo    sets up and runs the main job, ending in a report
# make test    sets up and runs the everyday tests
# make check   the static checks: format, lint, types, layers
# make slow    slow tests (browser, memory, large traces); make real-engine  tests against a real vLLM
PYTHON ?= python3
BIN := .venv/bin
SETUP := .venv/.set-up

.PHONY: demo test check slow real-engine bench lock clean

$(SETUP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=…" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(SETUP)
	$(BIN)/loadgen demo

test: $(SETUP)
	$(BIN)/python -m pytest

check: $(SETUP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy loadgen
	$(BIN)/lint-imports

slow: $(SETUP)
	$(BIN)/python -m pytest -m slow

real-engine: $(SETUP)
	$(BIN)/python -m pytest -m real_engine

bench: $(SETUP)
	$(BIN)/python benchmarks/truth.py

# Hashes for every platform, and no address of the place they came from. The image takes the versions of development.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header
lock: $(SETUP)
	$(BIN)/python -m pip install --quiet uv
	$(LOCK) --extra dev --extra parquet pyproject.toml -o requirements.lock
	$(LOCK) --constraint requirements.lock --extra otlp pyproject.toml -o deploy/requirements.lock
	$(LOCK) --constraint requirements.lock --extra otlp --extra service --extra postgres pyproject.toml -o deploy/service.lock
	$(LOCK) --constraint requirements.lock --extra otlp --extra locust pyproject.toml -o deploy/locust.lock
	echo hatchling | $(LOCK) --constraint requirements.lock - -o deploy/build.lock

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
