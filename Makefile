# What a newcomer types. Each target installs what it needs.
.PHONY: demo test bench gpu-check setup build help

help:
	@echo "make demo       train a leaking PyTorch model on the simulated GPU, attach, show the line"
	@echo "make test       everything: format, lints, licences, unit and integration tests"
	@echo "make bench      costs beside PyTorch's own recorder, printed as figures and ratios"
	@echo "make gpu-check  the same questions to a real GPU, 8 minutes; says so where there is none"
	@echo "make setup      install what the others need (they do it themselves)"
	@echo "make build      target/release/vramscope"

setup:
	@scripts/setup

build: setup
	cargo build --release --locked

demo: build
	@scripts/demo

test: setup
	@scripts/test

bench: build
	@scripts/bench

# PYTHON: an interpreter whose PyTorch can use the GPU.
PYTHON ?= python3
gpu-check:
	cargo build --release --locked
	@tests/gpu/check --python $(PYTHON) --output docs/gpu-check.md
