"""Makes one PDF of the built site: ``make pdf`` writes ``_build/book.pdf``.

Chromium prints every page in the order of ``_toc.yml``; then they are bound, with a table of
contents, an outline, page numbers, and links that lead to pages of the file. What is folded on a
page, hints and solutions among it, stays so. The pages of solutions, the guide to marking and the
reference of the package are left out, and of a verdict's card in a chapter all but what was found:
the ledger has the whole.
"""
