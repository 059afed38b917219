# Everything works on a fresh Debian 12 with git and make; scripts/setup installs the rest.

PREFIX  ?= /usr/local
DESTDIR ?=
DATA    ?= ./.reprise-data
ARGS    ?=
TARGET  ?=
SECONDS ?= 60
JOBS    ?= $(shell nproc)
CYCLES  ?= 10000

BIN  := build/release/reprise

# build.ninja is written last, so its presence means that configuring succeeded; from then on
# Ninja notices changes in the CMake files itself.
define cmake_build
@test -f build/$(1)/build.ninja || cmake --preset $(1)
@cmake --build --preset $(1) --parallel $(JOBS) $(if $(2),--target $(2))
endef

cxx_files = $(shell find src tests bench -name '*.h' -o -name '*.cpp' 2>/dev/null)

.PHONY: help setup build serve test crash crash-points load soak bench bench-storage install \
        sanitize sanitize-asan sanitize-tsan fuzz format format-check lint clean

help:  ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-13s %s\n", $$1, $$2}'

setup:  ## install the Debian packages that are missing
	@scripts/setup

build: setup  ## the optimised binary, build/release/reprise
	$(call cmake_build,release,reprise)

serve: build  ## build, then run a server on ./.reprise-data with examples/shop; options in ARGS=
	@exec $(BIN) serve --data $(DATA) --project-dir examples/shop $(ARGS)

test: setup  ## build and run every test
	$(call cmake_build,release)
	@scripts/test

crash: setup  ## kill a server under load CYCLES=10000 times and check what its clients were told
	$(call cmake_build,release,reprise)
	@exec scripts/crash --cycles $(CYCLES)

crash-points: setup  ## kill, and fail, the binary at every call to its disk: about an hour
	$(call cmake_build,release,reprise)
	@DISK_POINTS=all scripts/test --only 'crash_points or disk_errors' e2e

# The figures are printed, so the runner is called without what scripts/test would hide.
pytest = REPRISE_BIN=$(CURDIR)/$(BIN) PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m pytest -q -s -p no:cacheprovider

load: setup  ## thousands of clients, queues and due jobs at once; the figures are printed
	$(call cmake_build,release,reprise)
	@LOAD=full $(pytest) tests/e2e/test_load.py

soak: setup  ## an hour of load with faults, then ten million jobs; SOAK_MINUTES=5 for another time
	$(call cmake_build,release,reprise)
	@SOAK_MINUTES=$(or $(SOAK_MINUTES),60) $(pytest) tests/e2e/test_soak.py

bench: setup  ## build and run the benchmarks; options in ARGS=
	@scripts/setup beanstalkd redis-server
	$(call cmake_build,release)
	@if [ -x bench/run ]; then exec bench/run $(ARGS); else echo "no bench/run yet"; fi

bench-storage: setup  ## build and run the storage benchmark; options in ARGS=
	$(call cmake_build,release,reprise bench_programs)
	@exec bench/run-storage $(ARGS)

install: build  ## install under PREFIX=/usr/local, staged into DESTDIR=
	@mkdir -p build/install
	@$(BIN) manpage > build/install/reprise.1
	@$(BIN) completion bash > build/install/reprise.bash
	@$(BIN) completion zsh > build/install/_reprise
	@sed 's|@PREFIX@|$(PREFIX)|g' contrib/systemd/reprise.service > build/install/reprise.service
	install -Dm755 $(BIN) $(DESTDIR)$(PREFIX)/bin/reprise
	install -Dm644 build/install/reprise.1 $(DESTDIR)$(PREFIX)/share/man/man1/reprise.1
	install -Dm644 build/install/reprise.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/reprise
	install -Dm644 build/install/_reprise $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_reprise
	install -Dm644 build/install/reprise.service $(DESTDIR)$(PREFIX)/lib/systemd/system/reprise.service

sanitize: sanitize-asan sanitize-tsan  ## the tests under Address-, UB- and ThreadSanitizer

# Not the command line's: it runs for a moment, on what its user types, and takes a fifth of the build.
asan_modules := base model engine storage hooks broker runbook worker server webhook client spool test_support sim
asan_tests   := ^($(subst $() ,|,$(asan_modules)))\.
sanitize-asan: setup
	$(call cmake_build,asan,$(addsuffix _test,$(asan_modules)))
	@scripts/test --preset asan --whole --only '$(asan_tests)' unit sim

# Only what has threads; everything else is owned by one.
threaded = ^(broker|hooks|server|webhook|worker)\.|^spool\.(DrainTest|.*Removals)|^storage\..*(Conformance.*/(Durable|Restless)|Backup|SegmentPool|FullDisk|Reclaim)
sanitize-tsan: setup
	$(call cmake_build,tsan,broker_test hooks_test server_test spool_test storage_test webhook_test worker_test)
	@scripts/test --preset tsan --whole --only '$(threaded)' unit

fuzz: setup  ## the fuzz targets; one: TARGET=record_fuzz; how long each: SECONDS=60; always the same: INPUTS=100000
	@scripts/setup clang-14 libclang-rt-14-dev llvm-14
	$(call cmake_build,fuzz,$(if $(TARGET),$(TARGET),fuzz_targets))
	@scripts/fuzz --seconds $(SECONDS) $(if $(INPUTS),--inputs $(INPUTS)) $(TARGET)

format: setup  ## rewrite the C++ files in the project's format
	@clang-format-14 -i $(cxx_files)

format-check: setup  ## fail if `make format` would change a file
	@clang-format-14 --dry-run -Werror $(cxx_files)

lint: setup  ## clang-tidy over src/
	@scripts/setup clang-tidy-14
	@test -f build/dev/build.ninja || cmake --preset dev
	@find src -name '*.cpp' | xargs -P $(JOBS) -n 1 clang-tidy-14 -p build/dev --quiet --warnings-as-errors='*'

clean:  ## remove build/
	rm -rf build
