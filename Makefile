# make demo: see a robot walk.  make test: everything that CI runs.  make help: the rest.
PYTHON ?= python3
VENV ?= .venv
# a sourced ROS 2 is used as it is, with NumPy 1, which its message modules were built for; without one its wheels come from PyPI
# those wheels are no sourced ROS 2, even where this environment is on
OUTSIDE = import sys, rclpy; sys.exit(rclpy.__file__.startswith(sys.prefix) and sys.prefix != sys.base_prefix)
HAVE_ROS := $(shell $(PYTHON) -c '$(OUTSIDE)' 2>/dev/null && echo yes)
ROS = $(if $(HAVE_ROS),,ros$(COMMA))
COMMA = ,
# what `make demo` and `make test` install; EXTRAS=ros,sim,test,validate,train adds PyTorch
DEMO_EXTRAS = $(ROS)sim
EXTRAS ?= $(ROS)sim,test,validate
BIN = $(VENV)/bin
# one stamp for each set of extras, so that asking for more installs more; the demo is content with any set that begins with its own
STAMP = $(VENV)/$(EXTRAS).stamp
DEMO_STAMP = $(firstword $(wildcard $(VENV)/$(DEMO_EXTRAS)*.stamp) $(VENV)/$(DEMO_EXTRAS).stamp)
SOURCES = sim2real_ros launch test bench setup.py

.DEFAULT_GOAL := help
.PHONY: help demo test test-all nightly lint bench alarms soak evaluate faults clean

help:
	@echo "make demo      install into $(VENV) and watch a Go2 walk 20 s on the embedded simulator"
	@echo "make test      lint, types and tests"
	@echo "make test-all  the same with the tests that take minutes"
	@echo "make nightly   the property tests of the torque path with 100,000 cases each, hours"
	@echo "make bench     timings as ratios"
	@echo "make alarms    false alarms of the safety filter in 2 hours of simulated walking, about 7 minutes"
	@echo "make soak      30 minutes of the nodes in real time on an otherwise idle machine"
	@echo "make evaluate  the tracking and survival figures of the README"
	@echo "make faults    throw faults at the nodes and write docs/reaction-times.md"
	@echo "make clean     remove $(VENV)"

demo: $(DEMO_STAMP)
	@$(BIN)/sim2real run --seconds 20

# tests of nodes run one by one: each starts several processes
NODES = test/ros test/launch

test: $(STAMP) lint
	$(BIN)/python -m pytest -n 2 $(addprefix --ignore=,$(NODES))
	$(BIN)/python -m pytest $(NODES)

test-all: $(STAMP) lint
	$(BIN)/python -m pytest -m ''

# what stands between a policy and a motor
TORQUE_PATH = test/safety test/action

nightly: $(STAMP)
	HYPOTHESIS_PROFILE=nightly $(BIN)/python -m pytest -n 2 -m hypothesis --timeout 0 --durations 0 $(TORQUE_PATH)

lint: $(STAMP)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m bench

EVIDENCE = docs/safety-evidence.md

alarms: $(STAMP)
	OMP_NUM_THREADS=1 $(BIN)/python -m bench.alarms --hours 2 --markdown $(EVIDENCE)

soak: $(STAMP)
	$(BIN)/python -m bench.soak --minutes 30 --markdown $(EVIDENCE)

evaluate: $(STAMP)
	$(BIN)/sim2real evaluate go2_velocity

faults: $(STAMP)
	SIM2REAL_WRITE_REACTION_TIMES=1 $(BIN)/python -m pytest -m '' test/ros/test_faults.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || \
	  { echo "Python 3.10 or newer is needed; \"$(PYTHON)\" is `$(PYTHON) --version 2>&1`. Try: make demo PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -m venv $(if $(HAVE_ROS),--system-site-packages) $(VENV) || \
	  { rm -rf $(VENV); echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }

$(VENV)/%.stamp: $(VENV)/bin/python setup.py
	@echo "installing sim2real_ros[$*] into $(VENV) ..."
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[$*]' $(if $(HAVE_ROS),'numpy<2') > $(VENV)/pip.log 2>&1 || \
	  { grep -E '^ERROR' $(VENV)/pip.log | head -n 3 >&2; \
	    echo "the packages could not be installed: is there a network connection? The whole log is in $(VENV)/pip.log" >&2; exit 1; }
	@touch $@

clean:
	rm -rf $(VENV)
