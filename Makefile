# Every task of the project. `make demo` sets up and shows; `make test` sets up and tests.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# A stamp per set of Python requirements, so that set-up runs once.
DEMO_READY := $(VENV)/.demo-ready
TEST_READY := $(VENV)/.test-ready
ORACLE_READY := $(VENV)/.oracle-ready
RTL_READY := $(VENV)/.rtl-ready
DEMO_DIR ?= build/demo

.PHONY: os os-image os-long cluster cluster-long shared help demo test check test-rust test-python test-documents test-csdstore wheel wheel-guide llm browser oracle oracle-speed arm places sim soak crash fuzz vm vm-short rtl rtl-short rtl-long rtl-tools bench release release-try sdk install-kv docs clean

help:            ## list the targets
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

# The demo loads no programs: it does without their compiler, which takes longer to build than the
# rest together.
demo: $(DEMO_READY)  ## build everything, run Count in drives, on the host and on both, plan
	cargo build --release --locked -p csd --no-default-features
	$(BIN)/python demo/demo.py --csd $(CSD) --dir $(DEMO_DIR)

test:            ## all tests (short forms of the long lanes); goes on after one that fails
	@failed=; times=; for part in test-rust test-python test-documents test-csdstore; do \
	  begun=$$SECONDS; $(MAKE) --no-print-directory $$part || failed="$$failed $$part"; \
	  times="$$times$$part $$(( (SECONDS - begun + 30) / 60 )) min, "; \
	done; echo "$${times%, }"; [ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

test-rust:  ## Rust tests: units, transport, simulation, stock client, end to end, tidy
	cargo test --locked --workspace --no-fail-fast

test-python: $(TEST_READY)  ## planner tests; those in a browser need Chromium (make browser)
	cd python && ../$(BIN)/python -m pytest -q -rs -n auto --maxprocesses 8 --dist worksteal

# With the program that the Rust tests have built.
test-documents: $(TEST_READY)  ## every command of the read-me and the guide, as it is written there
	cargo test --locked --workspace --no-run -q
	$(BIN)/python -m pytest -q -p no:dash tests/documents tests/release
	$(BIN)/python tests/documents/run.py --csd $(CSD_TESTED) --csdplan $(BIN)/csdplan

# With the program that the Rust tests have built.
test-csdstore: $(TEST_READY) wheel  ## the Python package against a drive and an array; with pandas, PyArrow, DuckDB, Dask
	cargo test --locked --workspace --no-run -q
	$(BIN)/python -m pip install -q --force-reinstall --no-deps build/wheels/*.whl
	$(BIN)/python -m pip install -q "$$(ls build/wheels/*.whl)[test]" \
	  || echo 'some libraries could not be installed: their tests will be skipped'
	CSD=$(abspath $(CSD_TESTED)) $(BIN)/python -m pytest -q -rs -p no:dash clients/python/tests

WHEEL_PROFILE ?= dev
wheel: | $(VENV)/bin/python  ## wheel of the Python package csdstore, in build/wheels
	$(BIN)/python -m pip install -q 'maturin>=1.7,<2'
	rm -rf build/wheels
	CARGO_TARGET_DIR=$(abspath $(or $(CARGO_TARGET_DIR),target))/python $(BIN)/maturin build -q \
	  --locked --profile $(WHEEL_PROFILE) -m clients/python/Cargo.toml --out build/wheels

# An environment that is removed and made again each time, and what runs there. All tests of the
# package: make wheel-guide WHEEL_TESTS=clients/python/tests
WHEEL_ENV := build/wheel-guide
WHEEL_TESTS ?= clients/python/tests/test_guide.py
wheel-guide: wheel  ## the code of the Python guide in a fresh environment that has the wheel
	cargo test --locked --workspace --no-run -q
	rm -rf $(WHEEL_ENV)
	$(PYTHON) -m venv $(WHEEL_ENV)
	$(WHEEL_ENV)/bin/python -m pip install -q "$$(ls build/wheels/*.whl)[test]"
	CSD=$(abspath $(CSD_TESTED)) $(WHEEL_ENV)/bin/python -m pytest -q -rs -p no:cacheprovider \
	  $(WHEEL_TESTS)

llm: wheel  ## LMCache from PyPI over a drive: its check and benchmark (6 GB; skipped visibly)
	cargo test --locked --workspace --no-run -q
	$(BIN)/python tests/llm/run.py --csd $(CSD_TESTED) --wheel build/wheels/*.whl

# For CI: a mirror out of reach is said, and skips those tests; it fails nothing.
APT := timeout 300 apt-get -qq -o Acquire::Retries=1 -o DPkg::Lock::Timeout=60
browser:         ## install Chromium by apt, if it is missing and this is root
	@command -v chromium >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && { $(APT) update && DEBIAN_FRONTEND=noninteractive \
	       $(APT) install -y --no-install-recommends chromium; } >/dev/null; \
	then chromium --version; \
	else echo 'no Chromium, and none could be installed: browser tests will be skipped'; fi

check: $(TEST_READY)  ## formatting, lints, types, documentation
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets -- -D warnings
	cargo clippy --locked -p csd --no-default-features -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps -q
	cd python && ../$(BIN)/ruff check . && ../$(BIN)/ruff format --check . && ../$(BIN)/mypy
	cargo fmt --manifest-path clients/python/Cargo.toml --check
	cargo fmt --manifest-path bench/rocksdb/Cargo.toml --check
	cargo fmt --manifest-path crates/query/Cargo.toml --check
	$(BIN)/ruff check --config python/pyproject.toml clients/python
	$(BIN)/ruff format --config python/pyproject.toml --check clients/python
	$(BIN)/mypy --strict clients/python/python/csdstore
	$(BIN)/ruff check --config python/pyproject.toml demo recipes tests/cluster tests/query tests/shared tests/places tests/vm tests/llm tests/documents tests/release bench/compared.py bench/curves.py bench/cluster bench/files bench/planner bench/policies bench/os bench/protected bench/python bench/rebuild bench/sched bench/scrub bench/search bench/tunnel rtl

# The circuit: needs Verilator, which apt has; without it the lane says that it was skipped.
rtl-tools:
	@command -v verilator >/dev/null && command -v g++ >/dev/null && exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
	  { $(APT) update && DEBIAN_FRONTEND=noninteractive \
	    $(APT) install -y --no-install-recommends verilator g++; } >/dev/null || true; \
	fi

rtl-short: rtl-tools  ## the verifier in SystemVerilog: simulation alone, under 90 s
	$(PYTHON) rtl/simulate.py --form short

rtl: rtl-tools $(RTL_READY)  ## the same: simulation, proofs, cycles, one synthesis; 6 minutes
	$(BIN)/python rtl/simulate.py
	$(BIN)/python rtl/prove.py
	$(BIN)/python rtl/cycles.py
	$(BIN)/python rtl/synthesize.py

rtl-long: rtl-tools $(RTL_READY)  ## the same, all of it, with mutations; writes the record
	$(BIN)/python rtl/record.py
	$(BIN)/python rtl/plot.py

# The operating system of drives. Full and short forms of the image differ in their packages.
OS_IMAGE ?= build/os/root
os-image:        ## root folder for drives: OpenSSH, Java, Python, MPI (mmdebstrap, root); kept in build/
	packaging/os/make.sh $(OS_IMAGE)

os:              ## programs in drives' operating systems, on a short image; skipped visibly without root or runc
	cargo test --locked --workspace --no-run -q
	tests/os.sh

os-long:         ## the same on the image of `make os-image`: also a compiler, Java and MPI inside
	cargo test --locked --workspace --no-run -q
	tests/os.sh full

cluster: $(TEST_READY)  ## Open MPI and Hadoop on this machine and two drives, with a drive killed; skipped visibly
	cargo test --locked --workspace --no-run -q
	tests/cluster/run.sh $(CSD_TESTED) $(BIN)/python

# Parts of tests/cluster/long.sh, such as CLUSTER='sort lost_block'; all without it.
CLUSTER ?=
cluster-long: $(TEST_READY)  ## the same, long form: more jobs, Spark (345 MB), bad inputs, faults
	cargo test --locked --workspace --no-run -q
	$(BIN)/python -m pip install -q 'pyspark>=3.5,<3.6' \
	  || echo 'PySpark could not be installed: its parts will be skipped'
	tests/cluster/long.sh $(CSD_TESTED) $(BIN)/python $(CLUSTER)

shared:          ## host and drive mount one file system, each by its door, in two kernels; root
	cargo build --locked --release -q -p csd
	$(PYTHON) tests/shared/run.py --csd $(CSD) $(SHARED)

# More options of tests/vm/run.py, such as VM='--factor 3'.
VM ?=
CSD ?= $(or $(CARGO_TARGET_DIR),target)/release/csd

oracle: $(ORACLE_READY)  ## kernels next to NumPy, networkx, SciPy, google-crc32c and libisal
	cargo build --release --locked -p csd-kernels --example oracle
	$(BIN)/python tests/oracle/check.py --oracle target/release/examples/oracle
	$(BIN)/python tests/oracle/erasure.py --oracle target/release/examples/oracle
	cargo build --release --locked -p csd
	$(BIN)/python tests/oracle/drives.py --csd target/release/csd

oracle-speed: $(ORACLE_READY)  ## array merge next to std::set_union, sparse page rank next to SciPy
	cargo build --release --locked -q -p csd-bench --bin bench-kernels
	$(BIN)/python tests/oracle/speed.py \
	  --speed $(or $(CARGO_TARGET_DIR),target)/release/bench-kernels

# Shows that the aarch64 versions are right. Times in an emulator are no measure of their speed.
ARM := aarch64-unknown-linux-gnu
arm: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
arm: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER := qemu-aarch64 -L /usr/aarch64-linux-gnu
arm:             ## tests of the kernels for aarch64 in QEMU; skipped visibly without its tools
	@for tool in qemu-aarch64 aarch64-linux-gnu-gcc rustup; do \
	  command -v $$tool >/dev/null || { echo "no $$tool: kernels for aarch64 not tested"; exit 0; }; \
	done; \
	rustup target add $(ARM) || { echo "no target $(ARM): kernels for it not tested"; exit 0; }; \
	cargo test --locked -p csd-kernels --target $(ARM) --lib --tests

SEEDS ?= 0..200
# Without the compiler of programs, which no simulation loads.
sim:  ## simulation lane, long form, on all processors: make sim SEEDS=0..2000
	cargo test --locked --profile sim -p csd-tests --no-default-features --test simulation --no-run
	time CSD_SIM_SEEDS=$(SEEDS) cargo test --locked --profile sim -p csd-tests \
	  --no-default-features --test simulation -- --nocapture

MINUTES ?= 10
soak:  ## drives killed, replaced and damaged under load: make soak MINUTES=10
	CSD_SOAK_MINUTES=$(MINUTES) cargo test --locked --workspace --test e2e -- soak:: --nocapture

ROUNDS ?= 200
SEED ?= 1
# The lane loads no programs: the drive does without their compiler.
crash:  ## real drives that die with what they had not synced: make crash ROUNDS=200 SEED=1 (root)
	CSD_CRASH_ROUNDS=$(ROUNDS) CSD_CRASH_SEED=$(SEED) cargo test --locked --release -p csd \
	  --no-default-features --test crash -- --nocapture

FUZZ_SECONDS ?= 60
# Those whose inputs are whole streams start with long ones.
FUZZ_STREAMS := drive controller recovery
fuzz:  ## fuzz every parser, the controller and a drive: make fuzz FUZZ_SECONDS=600 (nightly)
	command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz
	cargo +nightly fuzz build
	for target in $$(cargo +nightly fuzz list); do \
	  case " $(FUZZ_STREAMS) " in *" $$target "*) more=-len_control=0;; *) more=;; esac; \
	  mkdir -p fuzz/corpus/$$target; \
	  [ ! -d fuzz/seeds/$$target ] || cp fuzz/seeds/$$target/* fuzz/corpus/$$target/; \
	  cargo +nightly fuzz run $$target -- -max_total_time=$(FUZZ_SECONDS) -max_len=4096 $$more; \
	done
# With the program that the tests have built: the machine is what takes time.
CSD_TESTED ?= $(or $(CARGO_TARGET_DIR),target)/debug/csd
vm-short:  ## a stock kernel against the drive, at most 4 minutes; skipped visibly without QEMU
	cargo test --locked --workspace --no-run -q
	$(PYTHON) tests/vm/run.py --csd $(CSD_TESTED) --form short --seconds 210 $(VM)

# Options of tests/places/run.py, such as PLACES='--only ext4'.
PLACES ?=
places:  ## file systems, control groups, full disks, forbidden calls; root, skipped visibly
	cargo test --locked --workspace --no-run -q
	$(PYTHON) tests/places/run.py --csd $(CSD_TESTED) $(PLACES)

# Options of tests/query/compare.py, such as QUERY='--scale 1'. It needs DuckDB and PyArrow.
QUERY ?=
QUERY_TARGET := build/query
query: $(TEST_READY)  ## SQL over tables in the drives, compared with DuckDB: TPC-H (Rust 1.94)
	cargo test --locked --manifest-path crates/query/Cargo.toml --target-dir $(QUERY_TARGET)
	cargo build --locked -p csd --features query --target-dir $(QUERY_TARGET)
	$(BIN)/python -m pip install -q duckdb pyarrow tpchgen-cli
	$(BIN)/python tests/query/compare.py --csd $(QUERY_TARGET)/debug/csd $(QUERY)

vm:  ## the same, long form: two kernels, both block sizes, more checks
	cargo build --locked --release -q -p csd
	$(PYTHON) tests/vm/run.py --csd $(CSD) --form long $(VM)

# Exit code 4 of the first says that the machine was too busy.
bench:  ## measured figures next to their floors, in one run each
	cargo run --locked --release -q -p csd --no-default-features -- bench block || [ $$? -eq 4 ]
	cargo run --locked --release -q -p csd-bench --bin bench-idle
	cargo run --locked --release -q -p csd-bench --bin bench-compute -- --tail-only
	cargo run --locked --release -q -p csd-bench --bin bench-kernels -- count
	cargo run --locked --release -q -p csd-bench --bin bench-kernels -- speed
	cargo run --locked --release -q -p csd-bench --bin bench-reactor -- echo
	cargo run --locked --release -q -p csd-bench --bin bench-wasm

release:  ## packages into build/release, tried in a clean Debian: .deb and a static program
	packaging/release.sh
	$(MAKE) --no-print-directory release-try

release-try:     ## try the packages that are there; needs root and mmdebstrap, or skips visibly
	tests/release/try.sh

# Where `make install-kv` puts libcsd_kv.
PREFIX ?= /usr/local
install-kv:      ## build libcsd_kv, the key-value client for C, and install it under PREFIX
	cargo build --release --locked -p csd-capi
	packaging/install-kv.sh $(or $(CARGO_TARGET_DIR),target)/release $(PREFIX) $(DESTDIR)

sdk:  ## build the examples of the SDK into sdk/built
	sdk/build.sh

docs:  ## reference of the Rust crates, in target/doc
	cargo doc --locked --workspace --no-deps

clean:  ## remove everything that the other targets made
	rm -rf target build $(VENV)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(DEMO_READY): python/pyproject.toml demo/requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r demo/requirements.txt
	touch $@

$(TEST_READY): python/pyproject.toml python/reproduce/pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  -e './python[test,reproduce]' -e ./python/reproduce
	touch $@

$(ORACLE_READY): tests/oracle/requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r tests/oracle/requirements.txt
	touch $@

$(RTL_READY): rtl/requirements.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r rtl/requirements.txt
	touch $@
