# make demo: see a robot walk.  make test: everything that CI runs.  make help: the rest.
PYTHON ?= python3
VENV ?= .venv
# a sourced ROS 2 is used as it is, with NumPy 1, which its message modules were built for; without one its wheels come from PyPI
HAVE_ROS := $(shell $(PYTHON) -c 'import rclpy' 2>/dev/null && echo yes)
ROS = $(if $(HAVE_ROS),,ros$(COMMA))
COMMA = ,
# what `make test` installs; `train` adds PyTorch
EXTRAS ?= $(ROS)sim,test
BIN = $(VENV)/bin
SOURCES = sim2real_ros launch test bench setup.py

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint bench evaluate clean

help:
	@echo "make demo      install into $(VENV) and watch a Go2 walk 20 s on the embedded simulator"
	@echo "make test      lint, types and tests"
	@echo "make test-all  the same with the tests that take minutes"
	@echo "make bench     timings as ratios"
	@echo "make evaluate  the tracking and survival figures of the README"
	@echo "make clean     remove $(VENV)"

demo: EXTRAS = $(ROS)sim
demo: $(VENV)/demo.stamp
	@$(BIN)/sim2real run --seconds 20

test: $(VENV)/test.stamp lint
	$(BIN)/python -m pytest

test-all: $(VENV)/test.stamp lint
	$(BIN)/python -m pytest -m ''

lint: $(VENV)/test.stamp
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy

bench: $(VENV)/test.stamp
	$(BIN)/python -m bench

evaluate: $(VENV)/test.stamp
	$(BIN)/sim2real evaluate go2_velocity

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
	  { echo "Python 3.10 or newer is needed; \"$(PYTHON)\" is `$(PYTHON) --version 2>&1`. Try: make demo PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(if $(HAVE_ROS),--system-site-packages) $(VENV) || \
	  { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(VENV)/demo.stamp $(VENV)/test.stamp: $(VENV)/bin/python setup.py
	@echo "installing sim2real_ros[$(EXTRAS)] into $(VENV) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[$(EXTRAS)]' $(if $(HAVE_ROS),'numpy<2') > $(VENV)/pip.log 2>&1 || \
	  { grep -E '^ERROR' $(VENV)/pip.log | head -n 3 >&2; \
	    echo "the packages could not be installed: is there a network connection? The whole log is in $(VENV)/pip.log" >&2; exit 1; }
	@touch $@

clean:
	rm -rf $(VENV)
