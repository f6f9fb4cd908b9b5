# `make demo` and `make test` do all their own set-up; they need make and Python 3.11 or newer, nothing else.
#   DEVICE=cuda make test     run the tests on a GPU (CUDA=12 or 13 chooses CuPy's build); without one, on simulated devices
#   make test-cuda            the same with DEVICE=cuda: tensors of all tests are on the GPU, and NCCL joins it
#   PYTHON=python3.12 make …  choose the interpreter
#   WORKERS=0 make test       run the tests in one process
#   make campaign             hours of random trials, a line of figures for each script of tests/campaign (their docstrings say what each tries);
#                             SEED=1 makes other trials. It fails where a script finds something, and keeps what that prints in out/campaign.
#   make packages             install packages over PyTorch without PyTorch, run programs with them over tensorgrad and over PyTorch,
#                             and write the table of docs/guide/packages.md; ROWS="timm peft" takes these rows alone

PYTHON  ?=
DEVICE  ?= cpu
CUDA    ?= 12
GPU     := $(if $(filter cuda,$(DEVICE)),$(shell command -v nvidia-smi))
WORKERS ?= $(if $(GPU),0,auto)
export PYTHON DEVICE

RUN     := .venv/bin/python
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
CUPY    := $(if $(GPU),.venv/.cuda$(CUDA))

.PHONY: demo test test-cuda lint bench docs wheel campaign packages clean distclean

demo: .venv/.demo
	@$(RUN) -m examples.mnist.cnn.train --epochs 6

test: lint $(CUPY)
	@$(ONE_THREAD) $(RUN) -m pytest -q -n $(WORKERS) --dist worksteal
	@echo "ruff, mypy and pytest found nothing wrong (device: $(DEVICE))"

test-cuda:
	@$(MAKE) --no-print-directory test DEVICE=cuda

lint: .venv/.test
	@$(RUN) -m ruff check .
	@$(RUN) -m mypy

bench: .venv/.test $(CUPY)
	@$(RUN) -m benchmarks.run

docs: .venv/.demo
	@$(RUN) -m tensorgrad.docs

wheel: .venv/.test
	@$(RUN) -m pip wheel . --quiet --no-deps --wheel-dir dist

SEED    ?= 0
# Scripts of tests/campaign, each with its full figures. The last line of each, its figures, is shown.
define TRIALS
sanitized_tests.py
kernels.py --level public --calls 1000000 --seed $(SEED) --sanitizers
kernels.py --level direct --calls 1000000 --seed $(SEED) --sanitizers
kernels.py --level memory --calls 100000 --seed $(SEED)
differential.py --calls 1000000 --seed $(SEED)
compiled_graphs.py --programs 2000 --seed $(SEED)
compiled_graphs.py --programs 2000 --seed $(SEED) --kernels numpy
half.py --dtype bfloat16
half.py --dtype float16
files.py --cases 200000 --seed $(SEED)
low_memory.py
thread_sanitizer.py
resume.py --kills 1000 --seed $(SEED)
launcher.py --kills 200 --seed $(SEED)
distributed.py --groups 400 --kills 200 --seed $(SEED)
endef
export TRIALS

campaign: .venv/.test
	@mkdir -p out/campaign; echo "$$TRIALS" | { \
	    failed=0; \
	    while read -r script given; do \
	        log="out/campaign/$$script $$given.txt"; \
	        $(ONE_THREAD) $(RUN) tests/campaign/$$script $$given > "$$log" 2>&1 < /dev/null || { failed=1; echo "see $$log"; }; \
	        tail -n 1 "$$log"; \
	    done; \
	    exit $$failed; }

packages: .venv/.test
	@$(RUN) tests/packages/run.py $(ROWS)

clean:
	@rm -rf out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean
	@rm -rf .venv

# A stamp for each set of packages, made anew when pyproject.toml or the source of the compiled kernels changes.
.venv/.%: pyproject.toml scripts/setup.sh hatch_build.py $(wildcard native/*)
	@sh scripts/setup.sh $*
	@touch $@
