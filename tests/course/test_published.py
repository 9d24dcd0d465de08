import re

import pytest

from course.claims.rows import BOOK
from course.published import FILE, published


def test_a_table_is_read_by_its_paper_which_the_bibliography_has():
    references = (BOOK / "references.bib").read_text(encoding="utf-8")
    assert set(re.findall(r"^ \"(\w+)\"", FILE.read_text(encoding="utf-8"), re.M)) <= set(
        re.findall(r"^@\w+\{(\w+),", references, re.M)
    )
    rows = published("dosovitskiy2021", "table 2")
    assert rows["ViT-H/14, JFT-300M"]["accuracy"]["ImageNet"] == 88.55


def test_every_row_of_a_table_has_the_same_fields():
    for table in ("table 2", "table 6"):
        fields = {tuple(row) for row in published("dosovitskiy2021", table).values()}
        assert len(fields) == 1


@pytest.mark.parametrize("asked", [("dosovitskiy2021", "table 3"), ("nobody2020", "table 2")])
def test_a_table_that_is_not_kept_is_refused_with_the_names_of_those_there_are(asked):
    with pytest.raises(ValueError, match="there are dosovitskiy2021, table 2, dosov"):
        published(*asked)
