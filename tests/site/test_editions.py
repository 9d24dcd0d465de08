"""Built editions: no solution where students read, no broken link where chapters are left out."""

import json
import re

import pytest

from book.tools.edition.__main__ import build
from book.tools.edition.solution_scan import leaks
from book.tools.edition.tree import Edition, table, write
from book.tools.gates import GATES, pages

# In another order each edition would be built several times.
pytestmark = [pytest.mark.full, pytest.mark.random_order(disabled=True)]
EDITIONS = {
    "student": Edition(student=True),
    "remix": Edition(chapters=frozenset({1, 2, 4, 14}), whole="https://owner.github.io/book/"),
    "both": Edition(student=True, chapters=frozenset({1, 2, 4, 14})),
}


@pytest.fixture(scope="module", params=EDITIONS)
def built(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "sources"
    write(EDITIONS[request.param], folder)
    assert build(EDITIONS[request.param], folder) == 0
    return EDITIONS[request.param], folder / "_build/html"


def test_gates_find_nothing_the_ledger_has_all_claims_and_headings_their_numbers(built):
    edition, site = built
    assert [problem for gate in GATES for problem in gate(site)] == []
    claims = json.loads((site / "book/ledger.json").read_text(encoding="utf-8"))["claims"]
    assert len(claims) > 200 and not any(claim["word"] == "open" for claim in claims)
    for name, tree in pages(site):
        if match := re.match(r"book/(\d\d)_", name):
            number = int(match[1])
            heading = tree.select_one("article h1 .section-number")
            assert number == 0 or heading.get_text().strip(". \xa0") == str(number)
            assert number == 0 or edition.chapters is None or number in edition.chapters


def test_students_read_no_solution_and_others_do(built):
    edition, site = built
    left_out = table(edition if edition.student else Edition(student=True))[1]
    found = leaks(site, left_out)
    assert found == [] if edition.student else len(found) > 20
