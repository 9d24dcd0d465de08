# `make help` lists the targets. PYTHON chooses the interpreter that .venv is made from.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/installed
EDITION := $(strip $(if $(STUDENT),--student) $(if $(CHAPTERS),--chapters $(CHAPTERS)) $(if $(WHOLE),--whole $(WHOLE)))
SITE := $(if $(EDITION),_build/edition/_build/html,_build/html)
PORT ?= 8000

export OMP_NUM_THREADS = 1
NBVAL := -m pytest --nbval --nbval-sanitize-with tests/nbval.cfg --nbval-cell-timeout 120 \
	--nbval-kernel-name python3 -p no:cacheprovider -n auto --dist loadscope book

.PHONY: help book serve test test-all test-site test-machines lint bench notebooks address figures
.PHONY: student site slides pdf epub clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

book: site  ## make .venv, build the site; STUDENT=1 without solutions, CHAPTERS=1,2,4 of these
	@echo "The book is ready: open $(CURDIR)/$(SITE)/index.html, or run 'make serve'."

serve: site  ## serve the site on localhost
	$(RUN) -m http.server --bind 127.0.0.1 --directory $(SITE) $(PORT)

test: $(READY) lint  ## lint, unit tests, every notebook, the site's static gates
	$(RUN) -m pytest -n auto -m "not slow" tests --ignore tests/site --ignore tests/browser
	$(RUN) $(NBVAL)
	$(MAKE) site
	$(RUN) -m pytest tests/site

test-all: test test-site  ## the same, what is slow, and every page in a browser
	$(RUN) -m pytest -n auto -m slow tests --ignore tests/browser

test-site: site  ## every page in headless Chromium, with no network
	$(RUN) -m pytest tests/browser

test-machines: $(READY)  ## unit tests and notebooks as on other processors; goes on where it was
	$(RUN) -m tools.machines

lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

bench: $(READY)  ## speed beside other libraries and stock layers; how soon inversion arrives
	env -u OMP_NUM_THREADS $(RUN) -m studies.benchmarks.speed
	env -u OMP_NUM_THREADS $(RUN) -m studies.benchmarks.training
	env -u OMP_NUM_THREADS $(RUN) -m studies.benchmarks.inversion
	$(RUN) -m studies.benchmarks.curvature

notebooks: $(READY)  ## re-execute the notebooks in place; equal results give an empty diff
	$(RUN) -m tools.execute

address:  ## put the repository's address into the notebooks of the branch `launch`
	$(PYTHON) -m tools.address

figures: $(READY)  ## draw the figures again to take: SVG, and PNG for print; the site offers them
	$(RUN) -m tools.figures

student: $(READY)  ## notebooks to hand out, without solutions: a folder and a zip
	$(RUN) -m tools.edition.handout $(if $(CHAPTERS),--chapters $(CHAPTERS))

site: $(READY)
	$(if $(EDITION),$(RUN) -m tools.edition $(EDITION),$(VENV)/bin/jupyter-book build . -W -n --keep-going)

slides: site  ## the slides, as pages that need no network and as PDFs: _build/slides
	$(RUN) -m tools.slides

pdf: site  ## the book as one PDF: _build/book.pdf
	$(RUN) -m tools.pdf

epub: site  ## the book for e-book readers: _build/book.epub
	$(RUN) -m tools.epub

clean:  ## remove what was built; .venv stays
	rm -rf _build

$(READY): requirements.txt
	@echo "Installing what requirements.txt lists into $(VENV), once; this takes minutes."
	test -d $(VENV) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --requirement requirements.txt
	touch $@
