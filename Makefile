# `make demo` and `make test` do all their own set-up; they need make and Python 3.11 or newer, nothing else.
#   DEVICE=cuda make test     run the tests on a GPU (CUDA=12 or 13 chooses CuPy's build); without one, on simulated devices
#   PYTHON=python3.12 make …  choose the interpreter
#   WORKERS=0 make test       run the tests in one process

PYTHON  ?=
DEVICE  ?= cpu
CUDA    ?= 12
GPU     := $(if $(filter cuda,$(DEVICE)),$(shell command -v nvidia-smi))
WORKERS ?= $(if $(GPU),0,auto)
export PYTHON DEVICE

RUN     := .venv/bin/python
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1
CUPY    := $(if $(GPU),.venv/.cuda$(CUDA))

.PHONY: demo test lint bench docs wheel clean distclean

demo: .venv/.demo
	@$(RUN) -m examples.mnist.cnn.train --epochs 6

test: lint $(CUPY)
	@$(ONE_THREAD) $(RUN) -m pytest -q -n $(WORKERS) --dist worksteal
	@echo "ruff, mypy and pytest found nothing wrong (device: $(DEVICE))"

lint: .venv/.test
	@$(RUN) -m ruff check .
	@$(RUN) -m mypy

bench: .venv/.test $(CUPY)
	@$(RUN) -m benchmarks.run

docs: .venv/.demo
	@$(RUN) -m tensorgrad.docs

wheel: .venv/.test
	@$(RUN) -m pip wheel . --quiet --no-deps --wheel-dir dist

clean:
	@rm -rf out dist build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -path ./.venv -prune -o -name __pycache__ -type d -exec rm -rf {} +

distclean: clean
	@rm -rf .venv

# A stamp for each set of packages, made anew when pyproject.toml or the source of the compiled kernels changes.
.venv/.%: pyproject.toml scripts/setup.sh hatch_build.py $(wildcard native/*)
	@sh scripts/setup.sh $*
	@touch $@
