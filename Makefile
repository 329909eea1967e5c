# `make help` lists the targets. Variables: CUDA=off builds without GPU code; BENCH=REGEX picks benches; PREFIX and DESTDIR
# say where `make install` goes; CUDA_ARCHITECTURES=90 compiles GPU code for this compute capability only; NVRTC=off makes `make dist` half as
# big; CHANGED=on runs only those tests with sanitizers that have changed since they passed, as KEEP=on records; IMAGE_BASE=debian makes `make image` independent of registries; COMPUTE_SANITIZER=memcheck (racecheck, initcheck, synccheck) runs the GPU tests under that tool.

.DEFAULT_GOAL := build
.NOTPARALLEL:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

CUDA  ?= on
BENCH ?= .
PREFIX ?= /usr/local
NVRTC ?= on
JOBS  ?= $(shell nproc)
export CHANGED KEEP JOBS

CMAKE := .venv/bin/cmake
archs := $(if $(CUDA_ARCHITECTURES),-DCMAKE_CUDA_ARCHITECTURES=$(CUDA_ARCHITECTURES))
on    := $(if $(filter off,$(CUDA)),OFF,ON)

# A build folder keeps what was once switched on: `make test` then `make build` recompiles nothing.
configure = $(CMAKE) --preset $(1) --log-level=WARNING $(2) >build/$(1).log || { cat build/$(1).log; exit 1; }
compile   = $(CMAKE) --build build/$(1) --parallel $(JOBS) --target $(2)
release   = $(call configure,release,-DPENSTOCK_CUDA=$(on) $(archs) $(1))
first     = $(if $(wildcard build/release/CMakeCache.txt),,-DPENSTOCK_TESTS=OFF)

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup setup-%
setup: ## install everything needed to build, test, benchmark and check
	@CUDA=$(CUDA) tools/setup
setup-%:
	@mkdir -p build
	@CUDA=$(CUDA) tools/setup $(subst -, ,$*)

.PHONY: build
build: setup-build ## build/penstock (the default)
	@$(call release,$(first))
	@$(call compile,release,penstock)
	@ln -sfn release/penstock build/penstock

.PHONY: install
install: build ## program, manual pages, headers, libraries and CMake package, to PREFIX=/usr/local
	@$(call compile,release,pages)
	@DESTDIR='$(DESTDIR)' $(CMAKE) --install build/release --prefix '$(PREFIX)'
	@echo "installed in $(DESTDIR)$(PREFIX)"

.PHONY: deb
deb: setup-build-package ## dist/penstock_VERSION_ARCH.deb, the Debian package with the service, checked by lintian
	@$(call release,$(first))
	@$(call compile,release,penstock pages)
	@tools/make_deb build/release dist
	@lintian --allow-root --no-cfg --fail-on error dist/penstock*.deb

.PHONY: image
image: deb ## the container image penstock:VERSION of this package, by podman, buildah or docker (docs/containers.md)
	@tools/make_image "$$(ls -t dist/penstock_*.deb | head -1)"

.PHONY: demo
demo: build ## run firewall, intrusion detection, router and IPsec over a gateway's captures
	build/penstock run examples/inspected_gateway/chain.yaml --trace 6
	@echo
	@echo "Alerts (examples/inspected_gateway/alerts.log; as JSON in eve.json):"
	@cat examples/inspected_gateway/alerts.log
	@echo
	@echo "Packets out: examples/inspected_gateway/out-lan.pcap, out-wan.pcap, out-dmz.pcap; examples/gateway/README.md describes the traffic"

.PHONY: test
test: setup-build-test ## build everything, and run every test that needs no GPU
	@$(call release,-DPENSTOCK_TESTS=ON)
	@$(call compile,release,all)
	@ln -sfn release/penstock build/penstock
	@tools/run_tests build/release -LE service

.PHONY: service-test
service-test: setup-build-test-package ## run the chain as a service, and install, upgrade and purge its package, in a systemd of its own
	@$(call release,-DPENSTOCK_TESTS=ON)
	@$(call compile,release,penstock pages)
	@tools/run_tests build/release -L service

.PHONY: asan
asan: setup-build-test-check ## the same tests under the address and undefined-behaviour sanitizers
	@$(call configure,asan)
	@$(call compile,asan,all)
	@tools/run_tests build/asan -LE 'fuzz|service'

.PHONY: asan-unit
asan-unit: setup-build-test-check ## the unit tests of src/ alone under these sanitizers, as CI runs them
	@$(call configure,asan)
	@tools/sanitized build/asan "$$(cat build/asan/unit_tests.txt)" -L unit

# Those whose code runs in several threads. The others of the folder are not built, and so not run.
threaded := run_test proxy_test process_test port_test control_test conntrack_test ring_test ipsec_numbers_test ipsec_replay_test conservation_test table_swap_test
.PHONY: tsan
tsan: setup-build-test ## the unit and property tests of multi-threaded code under the thread sanitizer
	@$(call configure,tsan)
	@tools/sanitized build/tsan '$(threaded)' -L 'unit|property'

.PHONY: fuzz
fuzz: setup-build-test-check ## a short run of every fuzzer over its saved corpus
	@$(call configure,asan)
	@tools/sanitized build/asan "$$(cat build/asan/fuzzers.txt)" -L fuzz

.PHONY: bench
bench: setup-build-test-bench ## run the benches; JSON in bench/results/<machine>/
	@$(call release,-DPENSTOCK_TESTS=ON -DPENSTOCK_BENCH=ON)
	@$(call compile,release,penstock benches)
	@tools/bench --filter '$(BENCH)'

.PHONY: dist
dist: setup-build-test-bench ## bundle program, GPU tests and benches in dist/, to run on machines with nothing installed
	@$(call release,-DPENSTOCK_TESTS=ON -DPENSTOCK_BENCH=ON -DPENSTOCK_BUNDLE_NVRTC=$(if $(filter off,$(NVRTC)),OFF,ON))
	@$(call compile,release,bundle)

.PHONY: gpu-tests
gpu-tests: setup-build-test ## build the GPU tests
	@$(call release,-DPENSTOCK_TESTS=ON)
	@$(call compile,release,penstock gpu_tests)

.PHONY: gpu-test
gpu-test: $(if $(wildcard build/release/CMakeCache.txt),gpu-tests) ## run the GPU tests of the build or of dist/; JSON in bench/results/<machine>/
	@tools/gpu_test

.PHONY: format
format: setup-check ## format the sources with clang-format
	@git ls-files -co --exclude-standard '*.h' '*.cc' '*.cuh' '*.cu' | xargs -r clang-format-14 -i

.PHONY: tidy
tidy: setup-build-test-check ## clang-tidy over what has changed
	@$(call configure,tidy)
	@tools/check_tidy build/tidy

.PHONY: lint
lint: setup-build-test-check ## check format and layers; in changed files, also that headers compile alone, and clang-tidy
	@tools/check_format
	@tools/check_layers
	@tools/check_headers --keep
	@$(call configure,tidy)
	@tools/check_tidy --keep build/tidy

.PHONY: lint-all
lint-all: setup-build-test-check ## the same checks in all files, changed or not
	@tools/check_format
	@tools/check_layers
	@tools/check_headers --all --keep
	@$(call configure,tidy)
	@tools/check_tidy --all --keep build/tidy

.PHONY: check
check: ## run everything that CI runs
	@.ci/run

.PHONY: clean
clean: ## remove build outputs, keep the set-up
	rm -rf build dist
