# `make run` and `make test` need make and python3.11 or newer; all packages go into .venv.
PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin
# What is installed: the packages of a run; those of the tests; PyTorch; models; lint.
STAMP  := $(VENV)/.installed
TESTS  := $(VENV)/.tests
TORCH  := $(VENV)/.torch
TRITON := $(VENV)/.triton
MODELS := $(VENV)/.models
LINT   := $(VENV)/.lint
SITE   := $(VENV)/.site
# The compiled core is built once, and again when a source of it changes.
BUILT  := $(VENV)/.core
TYPES  := $(shell find coordinator runtime/core sip_node -name '*.pxd')
CORE   := hatch_build.py runtime/core/compiled/sources.py $(TYPES) $(wildcard $(TYPES:.pxd=.py)) \
	$(shell find coordinator runtime/core sip_node -name '*.pyx')
# Of the packages, what is imported is compiled to bytecode, when it is first imported: half of the
# CPU time of an installation is bytecode that nothing runs. Many containers forbid Python to write
# it; then each process of each run would compile all that it imports, for a second. With the core,
# the bytecode of kernbench is made, and that of the packages of a run by importing them.
export PYTHONDONTWRITEBYTECODE :=
IMPORTED := click, greenlet, msgspec, numpy.typing, pyarrow.parquet, simpy, yaml, zmq
INSTALL := KERNBENCH_CORE=python $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable

.PHONY: run test test-fast test-nightly test-torch test-triton triton-coverage test-opinfo torch-coverage torch-products test-clusters cluster cluster-faults mutants chaos sanitize lint bench figures transcripts keys site wheel setup core setup-torch setup-triton clean

# The first run is answered by the reference in Python, whose results are those of the compiled core;
# then the core is built in the background.
run: $(if $(wildcard $(BUILT)),$(BUILT),$(STAMP))
	$(BIN)/python launch.py --sips 2
	@test -e $(BUILT) || $(BUILD_IN_BACKGROUND)

define BUILD_IN_BACKGROUND
{ mkdir -p build && (nohup nice $(BUILD_CORE) >build/core.log 2>&1 </dev/null &) && \
	echo "The compiled core (same results, several times faster) is being built in the background," && \
	echo "which takes about a minute (log: build/core.log). Runs use it as soon as it is there."; }
endef

# `sh -c`: the stamp is written only after a build without errors.
define BUILD_CORE
sh -c '$(BIN)/python hatch_build.py && $(BIN)/python -m compileall -q coordinator kernbench runtime sip_node && $(BIN)/python -c "import $(IMPORTED)" && touch $(BUILT)'
endef

test: setup
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup

# Every unit test, the golden digests, every key on both cores and a smoke of the rest: a minute.
test-fast: setup
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup tests/unit tests/golden \
		tests/integration/test_language_on_chip.py tests/integration/test_transport_contract.py \
		tests/property/test_every_key_on_both_cores.py \
		tests/multiproc/test_session_on_fake_lps.py

# The transcripts that `make test` leaves out: whole studies, all of `validate`, benches on four SIPs,
# large collectives.
test-nightly: setup
	$(INSTALL) '.[hta]'
	$(BIN)/python -m pytest --numprocesses auto --dist loadgroup -m nightly --timeout 1200 --ignore tests/cluster

# The device of PyTorch; `make test` leaves these tests out. By files: tests of one share a run.
test-torch: setup-torch
	$(BIN)/python -m pytest tests/torch --numprocesses auto --dist loadfile

# Triton kernels on PEs; `make test` leaves these tests out.
test-triton: setup-triton
	$(BIN)/python -m pytest tests/triton --numprocesses auto

# The table of kernels in docs/internals/triton-kernels.md.
triton-coverage: setup-triton
	$(BIN)/python -m tests.triton.coverage_table

# Every operator of PyTorch's own database, and its gradient, against those of the CPU.
test-opinfo: setup-torch
	$(BIN)/python -m pytest tests/torch/test_opinfo.py -m nightly --numprocesses auto

# Features of scripts, whole models, every operator of PyTorch's database, by where they run: writes
# docs/pytorch-coverage.md and docs/internals/torch-operators.md, and prints the counts beside those
# of the committed pages; takes about half an hour. A run that is cut goes on where it ended, by the
# same command; PARTS are some of features, models, published and operators. With a checkout of
# github.com/pytorch/examples its distributed scripts, too; two of its packages are for them:
# make torch-coverage PYTORCH_EXAMPLES=~/examples PARTS=published
# What cannot be installed, or is missing, is named, and its old rows stay. The requirements have
# commas, which would divide the arguments of `if`.
OF_EXAMPLES := 'hydra-core>=1.3,<2' 'boto3>=1,<2'
torch-coverage: setup-torch
	-@$(MAKE) --no-print-directory $(MODELS)
	-$(if $(PYTORCH_EXAMPLES),$(BIN)/python -m pip install --quiet $(OF_EXAMPLES))
	$(BIN)/python -m tests.torch.coverage_table $(PARTS)

# The times of products by rows and weights, without data: writes the table of
# docs/internals/torch-device.md, docs/figures/torch_products.json and the figure; takes about ten
# minutes of processor time.
torch-products: setup-torch
	$(BIN)/python -m tests.torch.product_table

# Points on clusters of Dask and Ray, which the tests start here; `make test` leaves them out. Ray has
# half a gibibyte of packages, and listens on all addresses: where the system permits, the tests have
# a network namespace of their own, which has no address but that of the loopback.
ISOLATED = $(shell unshare --net ip link set lo up 2>/dev/null && echo "unshare --net sh -c 'ip link set lo up && exec \"\$$@\"' sh")
test-clusters: setup
	$(INSTALL) '.[dask,ray]' loky optuna
	$(ISOLATED) $(BIN)/python -m pytest tests/clusters

# One simulation on several hosts, which are network namespaces here: as root, with iproute2, and
# skipped with the reason elsewhere. PyTorch and Open MPI take part where they are installed.
cluster: setup
	$(BIN)/python -m pytest tests/cluster -m nightly --ignore tests/cluster/test_faults.py

# Cables, frames and processes of such a run fail, each TIMES times, with all cores busy.
TIMES ?= 2
cluster-faults: setup
	$(BIN)/python -m pytest tests/cluster/test_faults.py -m nightly --times $(TIMES)

# Small edits of the timing code, each of which a check must notice; takes about 20 minutes.
mutants: setup
	$(BIN)/python -m tests.mutants

# Signals, foreign frames, limits of the system and damaged run directories, with all cores busy;
# takes 70 minutes beside other work. `make chaos ARGS="--series signals --only 7"` repeats a case.
chaos: setup
	$(BIN)/python -m tests.chaos $(ARGS)

# The compiled core with ASan and UBSan, in a build of its own: property tests and eight benches.
sanitize: setup
	$(BIN)/python -m tests.sanitize

lint: setup $(LINT)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright
	$(BIN)/lint-imports

# `make bench AGAINST=<commit>` compares with another commit; the table goes to docs/internals/speed.md.
# Without simulus, which only a comparison needs, its rows have a note in place of a number.
bench: setup
	-@$(BIN)/python -c 'import simulus' 2>/dev/null || \
		$(INSTALL) '.[bench]'
	$(BIN)/python -m kernbench.measure.host_speed.bench $(if $(AGAINST),--against $(AGAINST)) --write docs/internals/speed.md

# The figures of the documentation, from the results files in docs/figures; nothing is simulated.
figures: setup
	$(BIN)/python -m tests.renew_figures docs/figures

# Commands in README and docs show what they print now; `make transcripts PAGES=README.md` for one page,
# `make transcripts PAGES=--nightly` with the commands that take long.
transcripts: setup
	$(BIN)/python -m tests.renew_transcripts $(PAGES)

# The comments of topology.yaml and the table of docs/keys.md are those of the schema.
keys: setup
	$(BIN)/python -m tests.renew_keys

# The pages as a site in build/site, with every link and anchor checked; nothing is loaded.
site: $(SITE)
	$(BIN)/python -m mkdocs build --strict --site-dir build/site
	@echo "build/site/index.html"

# A wheel for this system and this version of Python in dist/, by the tools in .venv, without a
# network; `make wheel KERNBENCH_CORE=python` makes one of Python alone.
wheel: $(STAMP)
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
		--wheel-dir dist .
	@ls dist/*.whl

# What `make run` and `make test` need.
setup: $(TESTS) $(BUILT)

core: $(BUILT)

# PyTorch, and the C++ part of its device.
setup-torch: setup $(TORCH)
	$(BIN)/python -m kernbench.torch_backend.runtime.native_build

setup-triton: setup $(TRITON)

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "kernbench needs python 3.11 or newer; run: make PYTHON=/path/to/python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[core]'
	@touch $(STAMP)

$(TESTS): $(STAMP)
	$(INSTALL) '.[test]'
	@touch $(TESTS)

# PyTorch for CPUs. Where the package index has builds for GPUs only, TORCH_INDEX names another one:
# make setup-torch TORCH_INDEX=https://download.pytorch.org/whl/cpu
$(TORCH): $(TESTS)
	$(INSTALL) '.[torch]' $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
	@touch $(TORCH)

$(TRITON): $(TESTS)
	$(INSTALL) '.[triton]'
	@touch $(TRITON)

# Models of Hugging Face, for their table.
$(MODELS): $(TORCH)
	$(INSTALL) '.[models]'
	@touch $(MODELS)

# The type checker reads the stubs of PyTorch, which are in its wheel alone.
$(LINT): $(TORCH)
	$(INSTALL) '.[dev]'
	@touch $(LINT)

$(SITE): $(STAMP)
	$(INSTALL) '.[site]'
	@touch $(SITE)

# A build in the background is waited for.
$(BUILT): $(STAMP) $(CORE)
	$(BUILD_CORE)

clean:
	rm -rf $(VENV) build runs .pytest_cache .ruff_cache .hypothesis .import_linter_cache
