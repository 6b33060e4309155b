# One word for each daily thing. `make` alone builds; `make help` lists the words.

PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
BIN := $(CURDIR)/.venv/bin
CMAKE := PATH="$(BIN):$$PATH" $(BIN)/cmake

.DEFAULT_GOAL := build
# Steps of a set-up change the same environment; each uses the processors by itself.
.NOTPARALLEL:
.PHONY: build debian demo wheel release install simulate test test-long arm64 lint format sanitize tidy bench docs \
  clean distclean help

help:
	@echo "make build   .venv/bin/palmette, ready to run"
	@echo "make demo    the main job on this machine: discover, run with and without, page"
	@echo "make wheel   dist/: source distribution and wheels (PYTHONS='python3.10 python3.12'), tried"
	@echo "make release dist/: also the site, results, notes, SBOM and checksums; RELEASE.md"
	@echo "make install PREFIX=DIRECTORY   the command, libraries, headers, man pages"
	@echo "make simulate  SimGrid, and what palmette-lab simulate runs in it"
	@echo "make test    C++ tests, then Python and MPI tests; one closing line"
	@echo "make test-long  sweeps, soaks and suites of other projects, an hour or so"
	@echo "make arm64   C++ tests and MPI jobs for 64-bit Arm, under emulation"
	@echo "make lint    ruff, mypy, clang-format, the test of the layers"
	@echo "make format  let ruff and clang-format rewrite FILES='a.py b.cpp'"
	@echo "make sanitize  C++ tests under AddressSanitizer and UndefinedBehaviorSanitizer"
	@echo "make tidy    clang-tidy over the C++ sources (TIDY=palmette_base: one layer's)"
	@echo "make bench   the benchmark on the emulated cluster (BENCH='gather --sizes 64K')"
	@echo "make docs    build/docs-site: the documentation as a site; its links are checked"
	@echo "make clean   remove what was built; make distclean also .venv and .mpi"

# What the package itself and its build need; what tests and other work on it need.
.venv/.stamp-build: pyproject.toml tools/setup_venv.sh tools/requirements.py
	@tools/setup_venv.sh $(PYTHON) dependencies build
	@touch $@

.venv/.stamp-requirements: .venv/.stamp-build
	@tools/setup_venv.sh $(PYTHON)
	@touch $@

.mpi/.stamp: tools/setup_mpi.sh tools/mpi_wheels.txt .venv/.stamp-build
	@tools/setup_mpi.sh

debian:
	@tools/setup_debian.sh

# The package is used in place: a .pth file points at python/, where CMake installs what it compiles.
.venv/.stamp-package: pyproject.toml CMakeLists.txt .venv/.stamp-build
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  -C wheel.cmake=false -C editable.mode=inplace --editable .
	@touch $@

build: .venv/.stamp-requirements .mpi/.stamp .venv/.stamp-package
	@tools/build.sh release $(JOBS)

# Compiles and installs what it needs and no more.
demo: .venv/.stamp-package
	@tools/setup_mpi.sh mpich
	@tools/setup_debian.sh iproute2
	@tools/build.sh release $(JOBS) palmette_demo
	@$(BIN)/palmette demo

# Wheels that load on other machines, by PyPI's ziglang; then each is tried where there is no compiler.
PYTHONS ?= $(PYTHON)
wheel:
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(PYTHON) tools/make_wheel.py $(PYTHONS)
	@for python in $(PYTHONS); do $(PYTHON) tools/test_wheel.py --python $$python || exit 1; done

# All files of a release, in place of the commands that stood in CONTRIBUTING.md; RELEASE.md.
release: wheel docs
	@$(BIN)/python tools/make_release.py

install: build
	@tools/install.sh "$(PREFIX)"

simulate: build
	@tools/setup_simgrid.sh $(JOBS)

# Debian's own MPIs have Fortran modules and wrappers, which the wheels don't: tests of programs in Fortran need them.
FORTRAN := gfortran libmpich-dev mpich libopenmpi-dev openmpi-bin
# Debian's Python with its mpi4py (Open MPI), which a distributed FFT uses.
PYTHON_MPI := python3-mpi4py-fft
# Slurm itself, for what is written for it and read from it. Its services don't start without a slurm.conf.
SLURM := slurmctld slurmd slurm-client
# Reads what palmette convert writes.
OTF2 := otf2-tools
# Pages are looked at in a real browser.
BROWSER := chromium
# Shells that complete, and readers of man pages.
SHELLS := zsh fish groff man-db mandoc

.PHONY: tested
tested: debian build simulate
	@tools/setup_debian.sh $(FORTRAN) $(PYTHON_MPI) $(SLURM) $(OTF2) $(BROWSER) $(SHELLS)
	@tools/setup_ucc.sh
	@tools/setup_readers.sh
	@tools/setup_mpi4py.sh
	@tools/build.sh release $(JOBS) palmette_tests

test: tested
	@$(BIN)/python tools/run_tests.py $(TESTS)

# Other people's programs with their own tests, sweeps and soaks; every plan under the sanitizers.
test-long: tested arm64-built
	@tools/setup_debian.sh scalapack-mpi-test libfftw3-dev gdb
	@tools/setup_readers.sh long
	@tools/setup_mpi4py.sh abi
	@tools/build.sh asan-ubsan $(JOBS) palmette_test_execute palmette_test_node
	@for part in execute node; do build/asan-ubsan/tests/palmette_test_$$part --gtest_brief=1 || exit 1; done
	@PALMETTE_TEST_EVERY_SHAPE=1 build/release/tests/palmette_test_collectives --gtest_brief=1 \
	  --gtest_filter='*Jobs*:*EveryAlgorithm*'
	@$(BIN)/python tools/run_tests.py long arm64

# 64-bit Arm, compiled and emulated on this machine.
ARM64 := palmette_tests $(foreach abi,mpich ompi, \
  palmette_$(abi) palmette_record_$(abi) mpi_test_random_arguments_$(abi) mpi_test_calls_$(abi))

.PHONY: arm64-built
arm64-built: build
	@tools/setup_debian.sh g++-aarch64-linux-gnu qemu-user googletest libgtest-dev libgmock-dev
	@if tools/setup_mpi_arm64.sh; then tools/build.sh arm64 $(JOBS) $(ARM64); fi

arm64: arm64-built
	@$(BIN)/python tools/run_tests.py arm64

lint: build
	@$(BIN)/python tools/lint.py

format: .venv/.stamp-requirements
	@$(BIN)/python tools/lint.py --fix $(FILES)

sanitize: .venv/.stamp-requirements debian
	@tools/build.sh asan-ubsan $(JOBS) palmette_tests
	@$(BIN)/ctest --test-dir build/asan-ubsan --output-on-failure

TIDY ?= all palmette_tests
tidy: .venv/.stamp-requirements .mpi/.stamp debian
	@$(BIN)/clang-tidy --version >/dev/null 2>&1 || $(BIN)/pip install --quiet --disable-pip-version-check clang-tidy
	@tools/build.sh tidy $(JOBS) $(TIDY)

bench: debian build
	@$(BIN)/python studies/discover_10k.py
	@$(BIN)/python studies/program_million.py
	@$(BIN)/python studies/scale.py
	@$(BIN)/palmette-lab bench $(BENCH)

docs: .venv/.stamp-requirements
	@$(BIN)/python tools/check_links.py
	@$(BIN)/python tools/build_docs.py

clean:
	rm -rf build demo dist python/palmette/lib python/palmette/bin python/palmette/include python/palmette/_core.*

distclean: clean
	rm -rf .venv .mpi
