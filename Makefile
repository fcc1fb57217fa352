# Every target works on a bare machine with Python 3.10+: it makes .venv, installs what it needs, and runs.
.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-unit test-lowest test-highest test-random-order test-strength test-migration test-converter lint lint-workflows generated bench bench-gpu wheel docs docs-links install native native-before-pip test-sanitized test-aarch64 clean

# The first interpreter that is new enough; override with `make PYTHON=/path/to/python3.12 test`.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python3.10 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 15))' \
	2>/dev/null && command -v $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
STUDIO := packages/variegate-studio
PYTEST_ARGS ?=
BENCH ?= w1 w2
BENCH_GPU ?= w3 w3r
# Benchmarks that need what tests need.
IN_TEST_ENVIRONMENT := search w6
DEMO_ARGS ?=
STRENGTH_ARGS ?=
MIGRATION_ARGS ?=

help:
	@echo "make demo    expand a few photos with RandAugment and draw a contact sheet"
	@echo "make test    run the tests but the slow ones   (PYTEST_ARGS='-k rotate')"
	@echo "make test-unit  those that start no process and are quick, to run while working   (STRICT=1: none over 2 s)"
	@echo "make test-lowest, make test-highest   the same with the lowest and the highest versions of dependencies"
	@echo "make test-all   all of them: long random runs, and kills and crashes at many more places"
	@echo "make test-random-order   the same tests as make test, shuffled"
	@echo "make test-strength   plant defects, one at a time, and see that the tests notice   (STRENGTH_ARGS='blur --whole')"
	@echo "make test-migration   both codes of every pair in docs/migration, in the peers' environment   (MIGRATION_ARGS='dali.md')"
	@echo "make test-converter   what Albumentations and its conversions do to all targets        (CONVERTER_ARGS='--python PEER')"
	@echo "make test-sanitized   the kernels of every processor level under ASan and UBSan"
	@echo "make test-aarch64   random programs, run here and in an emulator of aarch64: the same pixels"
	@echo "make lint    ruff, clang-format, and mypy and pyright, with the examples and the Python of the pages"
	@echo "make bench   speed beside the peers   (BENCH='w2 --out docs/results'; BENCH=--help names the others: loader, w8, ...)"
	@echo "make bench-gpu   the same on a GPU (BENCH_GPU='w3 w3r'), in the Python that PYTHON names"
	@echo "make lint-workflows   the workflows in .github, and the Dockerfile"
	@echo "make generated  update files that programs write: C++ constants, signatures for editors, public names, the chart of speed"
	@echo "make native  compile the C++ of native/ that changed"
	@echo "make wheel   sdist, wheels of Variegate (of every processor level) and of its studio, into dist"
	@echo "make docs    build the site into build/docs   (make docs-links checks the links that leave it)"
	@echo "make clean   remove the environments and caches"

demo: $(VENV)/.installed-package
	$(BIN)/variegate demo $(DEMO_ARGS)

# Tests are half their collecting where they may keep bytecode.
unexport PYTHONDONTWRITEBYTECODE
# One process more than there are cores, as tests wait: for processes, for locks, for a time to be over.
PYTEST = $(BIN)/python -m pytest --numprocesses $$(( $$(getconf _NPROCESSORS_ONLN) + 1 )) --dist loadgroup

test: $(VENV)/.installed-test native
	$(PYTEST) -m "not slow" $(PYTEST_ARGS)

test-unit: $(VENV)/.installed-test native
	$(PYTEST) -m unit $(if $(STRICT),--strict-times) $(PYTEST_ARGS)

# Unit tests with the lowest versions that pyproject.toml allows, and with the highest; uv resolves them. Without Triton,
# whose lowest version comes with a later PyTorch, and without Ray and Keras.
test-lowest: build/lowest-direct/.installed
test-highest: build/highest/.installed
test-lowest test-highest:
	$(<D)/bin/python -m pytest --numprocesses $$(getconf _NPROCESSORS_ONLN) --dist loadgroup -m unit \
		--ignore tests/interop/test_ray.py $(PYTEST_ARGS)

build/%/.installed: pyproject.toml $(STUDIO)/pyproject.toml tests/unit.txt | $(BIN)/python
	$(BIN)/python -m venv --clear $(@D)
	$(@D)/bin/python -m pip install --quiet --disable-pip-version-check uv
	$(@D)/bin/uv pip compile --quiet --resolution $* --python $(@D)/bin/python --output-file $(@D)/core.txt pyproject.toml
	$(@D)/bin/uv pip install --quiet --python $(@D)/bin/python -r $(@D)/core.txt -r tests/unit.txt
	$(@D)/bin/uv pip install --quiet --python $(@D)/bin/python --no-deps -e ./$(STUDIO)
	-$(@D)/bin/uv pip uninstall --quiet --python $(@D)/bin/python triton
	@touch $@

# No test depends on another: whichever run before it, and in one process.
test-random-order: $(VENV)/.installed-test
	$(PYTEST) -m "not slow" -p randomly $(PYTEST_ARGS)

test-all: $(VENV)/.installed-test
	$(PYTEST) $(PYTEST_ARGS)

test-strength: $(VENV)/.installed-test
	$(BIN)/python -m tests.strength.run $(STRENGTH_ARGS)

test-migration: $(VENV)/.installed-examples
	$(BIN)/python -m benchmarks.migration $(MIGRATION_ARGS)

test-converter: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks.albumentations_audit $(CONVERTER_ARGS)

CPP = $(shell find native -name '*.cpp' -o -name '*.h')
lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CPP)
	$(BIN)/python -m tests.pages build/pages
	$(BIN)/mypy variegate native packages tools benchmarks conftest.py tests examples build/pages
	$(BIN)/basedpyright --pythonpath $(BIN)/python

# tests/test_missing.py compares these files with what is written here.
generated: $(VENV)/.installed-test
	$(BIN)/python -m native.constants
	$(BIN)/python -m tests.functional_stub
	$(BIN)/python -m tests.public_api
	$(BIN)/python -m docs.speed_chart

# Their own environment, as they need nothing of the project. Nothing is asked of the network once they are installed.
LINTERS := build/linters
lint-workflows: $(LINTERS)/.installed
	$(LINTERS)/bin/zizmor --offline --no-progress .github
	$(LINTERS)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(LINTERS)/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(LINTERS)/bin/yamllint --strict --config-file .github/yamllint.yml .github CITATION.cff .pre-commit-config.yaml
	$(LINTERS)/bin/hadolint Dockerfile

$(LINTERS)/.installed: .github/linters.txt
	$(PYTHON) -m venv $(LINTERS)
	$(LINTERS)/bin/pip install --quiet --no-compile --disable-pip-version-check -r $<
	@touch $@

bench: $(VENV)/.installed-$(if $(filter $(IN_TEST_ENVIRONMENT),$(BENCH)),test,examples)
	$(BIN)/python -m benchmarks.run $(BENCH)

# With the Python that PYTHON names, which has a CUDA build of PyTorch.
bench-gpu:
	$(PYTHON) -m benchmarks.run $(BENCH_GPU)

# One wheel serves every Python. VARIEGATE_TARGET=aarch64 builds for another processor, with ziglang.
wheel: $(VENV)/.installed-test
	$(BIN)/python -m hatchling build -d dist -t sdist
	$(BIN)/python -m pip wheel --quiet --no-deps -w dist . ./$(STUDIO)

# A warning is an error: a link that leads nowhere, a public name without its docstring.
SPHINX = $(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees

docs: $(VENV)/.installed-docs
	$(SPHINX) -b html docs build/docs
	@echo "build/docs/index.html"

docs-links: $(VENV)/.installed-docs
	$(SPHINX) -b linkcheck docs build/linkcheck

install: $(VENV)/.installed-dev

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Variegate needs Python 3.10 to 3.14 and found none on PATH;" \
		"say where it is: make PYTHON=/path/to/python3.12" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "python -m venv failed: is python3-venv installed?" >&2; exit 2; }

# One stamp per set of extras (`package`: none): nothing is installed again until the requirements change. Bytecode is
# left to the first import: most of what comes along is never imported, and to compile it takes half of the time. `dev`
# holds `test`.
$(VENV)/.installed-%: pyproject.toml $(STUDIO)/pyproject.toml constraints.txt
	@$(MAKE) --no-print-directory -j2 native-before-pip pip-install-$*
	@touch $@ $(if $(filter dev,$*),$(VENV)/.installed-test)

# The C++ is compiled while pip downloads. To build the project, pip waits for that and finds nothing left to compile.
native-before-pip:
	@test -z "$(PYTHON)" || $(PYTHON) native/build.py --before-pip >/dev/null

pip-install-%: | $(BIN)/python
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt \
		-e ".$(if $(filter package,$*),,[$*])" \
		$(if $(filter test dev,$*),-e ./$(STUDIO))

# The kernels of every level under ASan and UBSan, over the contracts of executors. Python itself leaks on purpose.
SANITIZED = build/native/sanitized/_native.so
test-sanitized: $(VENV)/.installed-test
	$(BIN)/python native/build.py --levels all --sanitize --out $(SANITIZED)
	for level in x86-64 x86-64-v2 x86-64-v3 x86-64-v4 x86-64-v4-vbmi; do \
		VARIEGATE_LIBRARY=$(CURDIR)/$(SANITIZED) VARIEGATE_LEVEL=$$level ASAN_OPTIONS=detect_leaks=0 \
		LD_PRELOAD=$$($${CC:-gcc} -print-file-name=libasan.so) $(BIN)/python -m pytest -q -n 0 -m "not slow" \
			tests/executors/test_contract.py tests/executors/test_deep.py tests/program/test_draws.py \
			-k "(cpu or test_draws or (test_deep and not cuda)) and not process" || exit; \
	done

# Programs that ran here run again on aarch64, in QEMU; PROGRAMS: how many. Installs nothing: see tools/aarch64_python.sh.
AARCH64 = build/aarch64
PROGRAMS ?= 4000
test-aarch64: $(VENV)/.installed-test native
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "ziglang>=0.15"
	env -u CC VARIEGATE_TARGET=aarch64 $(BIN)/python native/build.py --out $(AARCH64)/_native.so
	PYTHON=$(BIN)/python tools/aarch64_python.sh $(AARCH64)
	$(BIN)/python -m tests.native.replay record $(AARCH64)/programs $(PROGRAMS)
	PYTHONPATH=$(CURDIR) VARIEGATE_LIBRARY=$(CURDIR)/$(AARCH64)/_native.so \
		$(AARCH64)/python -m tests.native.replay compare $(AARCH64)/programs

# Compiles what changed; pip has compiled all of it when it installed the project.
native: | $(BIN)/python
	$(BIN)/python native/build.py

.PRECIOUS: $(VENV)/.installed-%

clean:
	rm -rf $(VENV) .venv-peers .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
