#!/bin/sh
# What readers take along, made of the built site: the next build puts it beside the pages, and links
# what is there. Slides and PDF need Chromium, and reveal.js is fetched once.
set -eu
python=${1:-python}
made=_build/beside/_static/take
rm -rf "$made" _build/chapters _build/html/_static/take # of an earlier run
mkdir -p "$made"
"$python" -m zipfile -c "$made/vision-transformers.zip" _build/html
"$python" -m book.tools.epub
mv _build/book.epub "$made/vision-transformers.epub"
"$python" -m book.tools.pdf
mv _build/book.pdf "$made/vision-transformers.pdf"
mv _build/chapters "$made/chapters"
"$python" -m book.tools.slides
mv _build/slides "$made/slides"
