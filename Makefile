# `make help` lists the targets. PYTHON chooses the interpreter that .venv is made from.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/installed
EDITION := $(strip $(if $(STUDENT),--student) $(if $(CHAPTERS),--chapters $(CHAPTERS)) $(if $(WHOLE),--whole $(WHOLE)))
SITE := $(if $(EDITION),_build/edition/_build/html,_build/html)
PORT ?= 8000

export OMP_NUM_THREADS = 1
UNIT := -m pytest -n auto --dist worksteal tests --ignore tests/site --ignore tests/browser
NBVAL := -m pytest --nbval --nbval-cell-timeout 120 --nbval-kernel-name python3 -p no:cacheprovider
BOOK := -n auto --dist loadscope book
ORDER := -v --random-order  # -v prints the seed: --random-order-seed runs that order again

.PHONY: help lab book serve quick test test-full test-site test-machines lint bench notebooks launch
.PHONY: chapters figures student gradescope quiz exam site slides pdf epub take clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

lab: $(READY)  ## make .venv, open the chapters in JupyterLab
	$(VENV)/bin/jupyter lab book

book: site  ## make .venv, build the site; STUDENT=1 without solutions, CHAPTERS=1,2,4 of these
	@echo "The book is ready: open $(CURDIR)/$(SITE)/index.html, or run 'make serve'."

serve: site  ## serve the site on localhost
	$(RUN) -m http.server --bind 127.0.0.1 --directory $(SITE) $(PORT)

quick: $(READY) lint  ## lint, tests of the core, one chapter and its checks: while you work
	$(RUN) -m pytest -n auto @tests/core.txt -m "not full"
	$(RUN) $(NBVAL) book/01_images_as_sequences.ipynb book/solutions/01_images_as_sequences.ipynb

test: $(READY) lint  ## lint, unit tests, every notebook, the site's static gates
	$(RUN) $(UNIT) -m "not full"
	$(MAKE) --jobs 2 chapters site  # the site is built on one core
	$(RUN) -m pytest -n auto tests/site -m "not full"

chapters: $(READY)
	$(RUN) $(NBVAL) $(BOOK)

test-full: $(READY) lint site  ## all tests, in random order, what takes long and browsers included
	$(RUN) $(UNIT) $(ORDER)
	$(RUN) $(NBVAL) $(BOOK)
	$(RUN) -m pytest -n auto --dist worksteal tests/site tests/browser $(ORDER)

test-site: site  ## every page in headless Chromium, with no network
	$(RUN) -m pytest tests/browser

test-machines: $(READY)  ## unit tests and notebooks as on other processors; goes on where it was
	$(RUN) -m book.tools.machines

lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

bench: $(READY)  ## speed beside other libraries and stock layers
	env -u OMP_NUM_THREADS $(RUN) -m studies.benchmarks.speed
	env -u OMP_NUM_THREADS $(RUN) -m studies.benchmarks.training
	$(RUN) -m studies.benchmarks.curvature

notebooks: $(READY)  ## re-execute the notebooks in place; equal results give an empty diff
	$(RUN) -m book.tools.execute

launch:  ## make the branch `launch`, whose notebooks work alone
	$(RUN) -m book.tools.launch

figures: $(READY)  ## draw the figures again to take: SVG, and PNG for print; the site offers them
	$(RUN) -m book.tools.figures

student: $(READY)  ## notebooks to hand out, without solutions: a folder and a zip
	$(RUN) -m book.tools.edition.handout $(if $(CHAPTERS),--chapters $(CHAPTERS)) $(if $(SERVED),--site $(SERVED))

gradescope: $(READY)  ## CHAPTER=N: the autograder of a chapter for Gradescope: autograder.zip
	$(RUN) -m course gradescope $(CHAPTER)

quiz: $(READY)  ## the quiz bank, for learning systems to import: _build/quiz
	$(RUN) -m course quiz

exam: $(READY)  ## SEED=n: an exam and its marking guide, numbers drawn: _build/exam
	$(RUN) -m course exam $(SEED)

site: $(READY)
	$(if $(EDITION),$(RUN) -m book.tools.edition $(EDITION),$(VENV)/bin/jupyter-book build . -W -n --keep-going)

slides: site  ## the slides, as pages that need no network and as PDFs: _build/slides
	$(RUN) -m book.tools.slides

pdf: site  ## the book as one PDF: _build/book.pdf
	$(RUN) -m book.tools.pdf

epub: site  ## the book for e-book readers: _build/book.epub
	$(RUN) -m book.tools.epub

take: site  ## the site with all of these, and itself in a zip, to take along
	sh book/tools/take.sh $(RUN)
	$(MAKE) site

clean:  ## remove what was built; .venv stays
	rm -rf _build

$(READY): requirements.txt
	@echo "Installing what requirements.txt lists into $(VENV), once; this takes minutes."
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --requirement requirements.txt
	$(RUN) -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@
