# Front door to the build; the work is done by CMake presets and the scripts in scripts/.

JOBS ?= $(shell nproc)
SEEDS ?= 10000
MUTANT_SEEDS ?= 100
# SECONDS is also a shell variable, which the environment may carry; only the command line counts.
ifneq ($(origin SECONDS),command line)
SECONDS := 60
endif
SINCE ?=
MINUTES ?= 10
SEED ?=
PREFIX ?= /usr/local

# $(call build,preset): configure and build.
build = cmake --preset $(1) >/dev/null && cmake --build --preset $(1) -j $(JOBS)

# $(call check,preset[,mutants]): run the tests, hunt the planted bugs if asked, and print the summary;
# the last line is the verdict.
define check
rm -rf build/$(1)/test-results build/$(1)/ctest.xml && mkdir -p build/$(1)/test-results; \
status=0; \
$(if $(2),scripts/mutants.py build/mutants --seeds $(MUTANT_SEEDS) \
  --results build/$(1)/test-results/mutants.json || status=1;) \
ctest --preset $(1) -j $(JOBS) --output-junit ctest.xml || status=$$?; \
scripts/test_summary.py build/$(1)/test-results build/$(1)/ctest.xml || status=1; \
exit $$status
endef

.DEFAULT_GOAL := help
.PHONY: help demo test playground scenarios twin hashes soak strangers chaos mutants ledger fuzz bench simbench macrobench \
        labbench viewbench callgrind asan tsan clang coverage lint format install clean setup setup-demo \
        setup-build

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## install missing Debian packages
	@scripts/setup.sh

setup-demo: # those that building for the demo needs
	@scripts/setup.sh demo

setup-build: # those that building needs
	@scripts/setup.sh build

setup-packages: # those that packages take beside that
	@scripts/setup.sh packages

demo: setup-demo ## train in a virtual cluster while its network breaks (40 s)
	@$(call build,demo)
	@build/demo/tools/mrc/mrc demo

test: setup ## build and run all tests
	@$(call build,release)
	@$(call build,mutants) --target dst mrc_script host_bugs_test
	@$(call build,demo)
	@playground/build.sh build/playground || [ $$? -eq 77 ]
	@$(call check,release,mutants)

playground: setup ## build the simulator for browsers: a folder of files (build/playground/site)
	@playground/build.sh build/playground

scenarios: setup ## run all scenarios, long ones too, and hold them against their bars
	@$(call build,release) --target mrc
	@scripts/scenarios.py --jobs $(JOBS) --json build/scenarios.json

twin: setup ## run the scenarios of scenarios/twin on real frames and in the simulator
	@$(call build,release) --target mrc
	@scripts/twin.py --json build/twin.json

hashes: setup ## show that one seed gives one result with g++ and clang, -O0 and -O2
	@scripts/hashes.py --jobs $(JOBS)

soak: setup ## run seeds that nobody has run before and enter them in the ledger (SEEDS=10000)
	@$(call build,release) --target dst
	@scripts/soak.py build/release/tests/dst/dst --seeds $(SEEDS) --jobs $(JOBS)

strangers: setup ## what a release wants of forged and repeated packets and keys (20 minutes; root)
	@$(call build,release) --target strangers forger_test
	@mkdir -p build/strangers
	@build/release/tests/strangers/strangers --seed $$(date +%s) --forged 1000000000 \
	 --replayed 1000000000 --keys 100000000 --damaged 10000000 \
	 --results build/strangers/strangers.json
	@build/release/tests/system/forger/forger_test --gtest_filter=*Flood* --flood 10000000 \
	 --results build/strangers/forger.json

chaos: setup ## break a lab at random under verified traffic (MINUTES=10, SEED=n for the same again)
	@$(call build,release) --target mrc
	@results=build/chaos/$$(date +%s) && mkdir -p $$results && MRC_TEST_RESULTS=$$results \
	 tests/system/chaos/chaos.py --mrc build/release/tools/mrc/mrc --minutes $(MINUTES) \
	 $(if $(SEED),--seed $(SEED))

mutants: setup ## show that the tests notice every planted bug (MUTANT_SEEDS=100 per bug)
	@$(call build,mutants) --target dst mrc_script host_bugs_test
	@scripts/mutants.py build/mutants --seeds $(MUTANT_SEEDS) --all

ledger: ## add the counts of `make test`, `chaos`, `strangers` and `fuzz` to tests/ledger.tsv
	@scripts/ledger.py

fuzz: setup ## run each fuzz target for a while (SECONDS=60)
	@$(call build,fuzz)
	@scripts/fuzz.sh $(SECONDS)

bench: setup ## run the micro benchmarks
	@$(call build,release)
	@build/release/bench/micro/mrc_bench
	@build/release/bench/micro/mrc_worst_packet

simbench: setup ## measure speed and memory of the simulator
	@$(call build,release) --target mrc
	@bench/sim/run.py --json build/simbench.json

macrobench: setup ## measure real packets between two namespaces beside iperf3 and others (root)
	@$(call build,release) --target mrc mrc_nccl mrc_nccl_bench
	@bench/macro/run.py --json build/macrobench.json
	@bench/nccl/run.py --json build/ncclbench.json

viewbench: setup ## measure the page of mrc view and the playground (about 10 minutes)
	@$(call build,release) --target mrc lib_mrc
	@playground/build.sh build/playground || [ $$? -eq 77 ]
	@bench/macro/view.py build/release/tools/mrc/mrc --playground build/playground --json build/viewbench.json

labbench: setup ## measure on real packets how fast broken paths are left (about 10 minutes)
	@$(call build,release) --target mrc mrc_lab_bench
	@bench/lab/run.py --json build/labbench.json

callgrind: setup ## count instructions of the hot paths
	@$(call build,release)
	@bench/micro/callgrind.sh

asan: setup ## run all tests under AddressSanitizer and UBSan
	@$(call build,asan)
	@$(call check,asan)

tsan: setup ## run all tests under ThreadSanitizer
	@$(call build,tsan)
	@$(call check,tsan)

clang: setup ## build everything with clang and run the unit tests
	@$(call build,clang)
	@mkdir -p build/clang/test-results && ctest --preset clang -j $(JOBS) -L 'unit|tidy'

coverage: setup ## measure line coverage of the tests
	@$(call build,coverage)
	@find build/coverage -name '*.gcda' -delete
	@$(call check,coverage)
	@scripts/coverage.sh

lint: setup ## check format, naming and house rules (SINCE=<commit> for changed files only)
	@scripts/lint.sh $(SINCE)

format: setup ## lay out all C++ files with clang-format
	@find src plugins tools tests fuzz bench -name '*.h' -o -name '*.cc' 2>/dev/null | \
	 xargs -r clang-format-14 -i

.PHONY: deb packages-test setup-packages
deb: setup-packages ## build Debian packages (build/deb) and let lintian look at them
	@scripts/deb.sh

packages-test: setup-packages ## install the packages of `make deb` into a fresh Debian and use them (root)
	@tests/packages/packages_test.py build/deb || { status=$$?; [ $$status -eq 77 ]; }

install: setup-build ## build and install under PREFIX (/usr/local), or there under DESTDIR
	@$(call build,release)
	@cmake --install build/release --prefix $(PREFIX)

clean: ## remove all build products
	rm -rf build
