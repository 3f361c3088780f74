# `make run` and `make test` need make and python3.11 or newer; all packages go into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
# The compiled core is built after the packages are installed, and again when a source of it changes.
BUILT  := $(VENV)/.core
ROOMS  := coordinator/compiled runtime/core/compiled sip_node/compiled
CORE   := hatch_build.py $(foreach room,$(ROOMS),$(wildcard $(room)/*.pyx $(room)/*.pxd)) runtime/core/compiled/sources.py

.PHONY: run test test-fast test-nightly test-torch mutants sanitize lint bench figures setup setup-torch clean

run: setup
	$(BIN)/python launch.py --sips 2

test: setup
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup

# Every unit test, the golden digests and a smoke of the rest: less than a minute.
test-fast: setup
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup tests/unit tests/golden \
		tests/integration/test_language_on_chip.py tests/integration/test_transport_contract.py \
		tests/multiproc/test_session_on_fake_lps.py

# The transcripts that `make test` leaves out: whole studies, all of `validate`, benches on four SIPs,
# large collectives.
test-nightly: setup
	KERNBENCH_CORE=python $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[hta]'
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup -m nightly --timeout 1200

# The device of PyTorch; `make test` leaves these tests out. By files: tests of one share a run.
test-torch: setup-torch
	$(BIN)/python -m pytest tests/torch --numprocesses auto --dist loadfile

# Small edits of the timing code, each of which `validate` must notice; takes about 20 minutes.
mutants: setup
	$(BIN)/python -m tests.mutants

# The compiled core with ASan and UBSan, in a build of its own: property tests and eight benches.
sanitize: setup
	$(BIN)/python -m tests.sanitize

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

# `make bench AGAINST=<commit>` compares with another commit; the table goes to docs/performance.md.
# Without simulus, which only a comparison needs, its rows have a note in place of a number.
bench: setup
	-@$(BIN)/python -c 'import simulus' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python -m kernbench.speed.bench $(if $(AGAINST),--against $(AGAINST)) --write docs/performance.md

# The figures of the documentation, from the results files in docs/figures; nothing is simulated.
figures: setup
	$(BIN)/python -m kernbench.studies.figures docs/figures

setup: $(BUILT)

# PyTorch for CPUs, and the C++ part of the device. Where the package index has builds for GPUs only,
# TORCH_INDEX names another one: make setup-torch TORCH_INDEX=https://download.pytorch.org/whl/cpu
setup-torch: $(BUILT)
	KERNBENCH_CORE=python $(BIN)/python -m pip install --quiet --disable-pip-version-check \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) --editable '.[torch]'
	$(BIN)/python -m kernbench.torch_backend.native_build

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kernbench needs python 3.11 or newer; run: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	KERNBENCH_CORE=python $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,plots,web]'
	@touch $(STAMP)

# Bytecode is compiled here, since many containers set PYTHONDONTWRITEBYTECODE: each process of a run
# would compile every module it imports, for 0.4 s of CPU.
$(BUILT): $(STAMP) $(CORE)
	$(BIN)/python hatch_build.py
	$(BIN)/python -m compileall -q -j 0 coordinator kernbench runtime sip_node
	@touch $(BUILT)

clean:
	rm -rf $(VENV) build runs .pytest_cache .ruff_cache .hypothesis .import_linter_cache
