# 問いから積み上げる Transformer — `make help` lists what there is
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV ?= .venv
COLAB_VENV ?= .venv-colab
ANSWERS ?= 1
PORT ?= 8000
BIN := $(VENV)/bin
export OMP_NUM_THREADS ?= 2
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export JUPYTER_PLATFORM_DIRS := 1

.PHONY: help book pdf serve test test-fast test-long lint unit notebooks exercises grade glossary figs derived bench colab-venv clean distclean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(BIN)/.installed: requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -r requirements.lock
	@touch $@

$(COLAB_VENV)/bin/.installed: requirements-colab.txt
	$(PYTHON) -m venv $(COLAB_VENV)
	$(COLAB_VENV)/bin/python -m pip install -q -r requirements-colab.txt
	@touch $@

book: $(BIN)/.installed ## execute every page and write _build/html (ANSWERS=0 leaves the answers out)
	ANSWERS=$(ANSWERS) $(BIN)/python tools/build.py

pdf: $(BIN)/.installed ## write _build/html/book.pdf (needs LuaLaTeX; ANSWERS=0 leaves the answers out)
	ANSWERS=$(ANSWERS) $(BIN)/python tools/pdf.py

serve: book ## build, then show the book at http://localhost:8000
	$(BIN)/python -m http.server $(PORT) --bind 127.0.0.1 --directory _build/html

test: lint unit book colab-venv ## text, code, exercises, built pages in a browser, notebooks under Colab's versions
	@# two at a time: the graders and the browser; then the notebooks, which train; what failed stands last
	@set +e; $(BIN)/python -m pytest -q tests/exercises > _build/exercises.log 2>&1 & exercises=$$!; \
	$(BIN)/python -m pytest -q tests/book 2>&1 | tee _build/browser.log; book=$$?; \
	wait $$exercises; graders=$$?; cat _build/exercises.log; \
	$(BIN)/python -m pytest -q tests/notebooks 2>&1 | tee _build/notebooks.log; notebooks=$$?; \
	grep -hE '^(FAILED|ERROR) ' _build/{browser,exercises,notebooks}.log; \
	exit $$((book + graders + notebooks))

test-fast: lint ## what takes less than two minutes
	$(BIN)/python -m pytest -q -m "not slow" tests/unit

test-long: $(BIN)/.installed ## every question's right and wrong answers on 200 seeds (about an hour)
	EXERCISE_SEEDS=200 $(BIN)/python -m pytest -q $(wildcard tests/exercises/test_bank*.py)

unit: $(BIN)/.installed
	$(BIN)/python -m pytest -q tests/unit

lint: $(BIN)/.installed ## style of code and prose, and that derived files are up to date
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python tools/lint_text.py
	$(MAKE) --no-print-directory derived

derived: $(BIN)/.installed
	$(BIN)/python tools/make_notebooks.py --check
	$(BIN)/python tools/exercises.py --check
	$(BIN)/python tools/make_figs.py --check
	$(BIN)/python tools/make_glossary.py --check

notebooks: $(BIN)/.installed ## write chapters/**/NN_name.ipynb beside each NN_name.md
	$(BIN)/python tools/make_notebooks.py

exercises: $(BIN)/.installed ## write the student notebooks and the exercise pages from exercises/weekNN.md
	$(BIN)/python tools/exercises.py

grade: $(BIN)/.installed ## grade a folder or zip: ASSIGNMENT=week13 SUBMISSIONS=folder OUT=folder (more: ARGS="--jobs 4")
	$(BIN)/python -m exercises.grading "$(or $(ASSIGNMENT),week13)" "$(or $(SUBMISSIONS),exercises/submitted)" "$(or $(OUT),exercises/graded)" $(ARGS)

glossary: $(BIN)/.installed ## write chapters/appendix/glossary.md from chapters/terms.yml
	$(BIN)/python tools/make_glossary.py

figs: $(BIN)/.installed ## draw figs/*.svg anew from figs/src/*.py
	$(BIN)/python tools/make_figs.py

bench: $(BIN)/.installed ## speed and memory as ratios within one run: benchmarks/results.json
	$(BIN)/python benchmarks/run.py

colab-venv: $(COLAB_VENV)/bin/.installed

clean: ## remove what was built (the environments stay)
	rm -rf _build .pytest_cache .ruff_cache exercises/autograded exercises/feedback exercises/verdicts exercises/source exercises/gradebook.db exercises/grades.csv
	find . -name __pycache__ -not -path "./.venv*" -prune -exec rm -rf {} +

distclean: clean ## remove the environments too
	rm -rf $(VENV) $(COLAB_VENV)
