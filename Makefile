# Shardwright's front door; `make help` lists the targets. Every one of them sets .venv up first where that is needed.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo docs test types fast-tests test-all test-full cluster-test engines soak bench loaders lock audit release clean

BIN := .venv/bin
TIMED := tools/timed

help: ## what there is
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

setup: ## .venv with the stack this machine can run (SHARDWRIGHT_STACK=current|fallback forces one)
	@$(TIMED) 'set-up' tools/setup.sh

demo: setup ## a small data set, and the whole pipeline over it
	@[ -e demo-data ] || $(TIMED) 'sample' $(BIN)/shardwright sample --out demo-data --count 200 --height 350 --width 525
	@$(TIMED) 'demo' $(BIN)/shardwright run pipelines/configs/demo.yaml

docs: setup ## the site of the documentation, in build/site
	@$(TIMED) 'site' tools/site

test: setup ## lint, types, fast tests, one pipeline per task, documented commands (three times `make demo`)
	@$(TIMED) 'ruff check' $(BIN)/ruff check .
	@$(TIMED) 'ruff format' $(BIN)/ruff format --check .
	@$(TIMED) 'shell scripts' tools/shell_scripts
	@$(TIMED) 'site' tools/site
	@$(MAKE) --no-print-directory -j2 types fast-tests

# The types are checked while the tests wait for files and processes.
types:
	@$(TIMED) 'types' tools/types

fast-tests:
	@$(TIMED) 'tests' tools/run_tests test

test-all: setup ## every promise on this stack (six times `make demo`; run `make test` first)
	@$(TIMED) 'all tests' tools/run_tests all

test-full: setup ## the base installation, the other stack, data sets compared byte by byte, the container image (root)
	@$(TIMED) 'base installation' tools/bare.sh
	@$(TIMED) 'other stack' tools/other_stack.sh
	@$(TIMED) 'image' tools/image.sh try

cluster-test: setup ## manifests and rights on a real Kubernetes API server, built from Debian's sources (root; CRDS=DIR: definitions of JobSet and KServe)
	@$(TIMED) 'cluster' env SHARDWRIGHT_CRDS=$(abspath $(CRDS)) tools/cluster.sh

engines: setup ## JobSet, KServe's definitions and Beam's Prism, built from their Go modules: our documents on a real control plane
	@$(TIMED) 'engines' tools/engines.sh

soak: setup ## what takes long: a hundred kills, ten thousand flipped bits, power cuts on ext4 and xfs (root), memory over a hundred thousand images, mistakes that tests must find
	@$(TIMED) 'disks' tools/disks
	@$(TIMED) 'soak' $(BIN)/python -m pytest -q -m soak --timeout 0
	@$(TIMED) 'property tests' env SHARDWRIGHT_EXAMPLES=thorough tools/run_tests test --timeout 0 tests/shardwright
	@$(TIMED) 'mutants' tools/mutants -j 2
	@$(TIMED) 'guarantees' tools/guarantees

bench: setup ## the promised figures of ingest, masks and stores on this machine (SUBJECT=month, loader, report, transform: others)
	@$(BIN)/python -m benchmarks $(or $(SUBJECT),ingest)

loaders: setup ## our loader beside grain, WebDataset, TFDS' way and Keras' own (they are downloaded, and thrown away)
	@$(TIMED) 'loaders' $(BIN)/python benchmarks/loaders.py

lock: ## resolve requirements/*.in again, keeping versions that still fit (UPGRADE=1 takes the newest)
	@tools/lock.sh $(if $(UPGRADE),--upgrade)

audit: setup ## compare the locks with published vulnerabilities (ADVISORIES=PATH: a copy of the advisories)
	@tools/audit $(if $(ADVISORIES),--advisories $(ADVISORIES))

release: setup ## checks, sdist, wheel, images and tag of the version in shardwright/version.py (DRY_RUN=1 prints the steps)
	@tools/release $(if $(DRY_RUN),--dry-run)

clean: ## remove what set-up, tests and the demo made in this checkout
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info demo-data shardwright-runs
