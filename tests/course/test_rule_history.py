"""A rule that changes after its first stored verdict says so, in ``amended``."""

import json
import shutil
import subprocess

import pytest
import yaml

from book.tools.address import ROOT
from book.tools.rule_history import ROWS, Change, changes, same, why_not
from course.claims.verdict import MIME

ASKED_FOR_HALF = {">= 0.5": "holds", "otherwise": "not seen at this scale"}
ASKS_FOR_LESS = {">= 0.4": "holds", "otherwise": "not seen at this scale"}
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
HALF = "holds if >= 0.5; otherwise not seen at this scale"


def silent(root):
    """Changes of rules whose claim has no ``amended`` entry with the form before."""
    rows = yaml.load((root / ROWS).read_bytes(), yaml.CSafeLoader)["claims"]
    told = {row["id"]: [entry["was"] for entry in row.get("amended", [])] for row in rows}
    return [
        change
        for change in changes(root)
        if not any(same(change.was, was) for was in told.get(change.claim, []))
    ]


def test_every_rule_changed_after_its_first_verdict_says_so():
    if reason := why_not():
        pytest.skip(reason)
    assert not silent(ROOT), "add an entry to the claim's 'amended', with the form before as 'was'"


@pytest.fixture
def book(tmp_path):
    """A repository whose rule asks for a half in the first commit, and is answered in the next."""
    if not shutil.which("git"):
        pytest.skip("there is no git")
    (tmp_path / "book").mkdir()
    run(tmp_path, "init", "--quiet")
    write(tmp_path, ASKED_FOR_HALF)
    commit(tmp_path)
    output = {"data": {MIME: {"figure": "0.45", "id": "R01", "verdict": "holds"}}}
    text = json.dumps({"cells": [{"outputs": [output]}]}, indent=1)
    (tmp_path / "book/02_attention.ipynb").write_text(text)
    commit(tmp_path)
    return tmp_path


def run(root, *arguments):
    subprocess.run(["git", "-C", root, *arguments], check=True, capture_output=True)


def write(root, rule, **more):
    rows = {"claims": [{"id": "R01", "rule": rule} | more, {"id": "R02"}]}
    (root / ROWS).write_text(yaml.safe_dump(rows, sort_keys=False))


def commit(root):
    run(root, "add", ".")
    run(root, *AUTHOR, "commit", "--quiet", "--message", "A change")


LESS = HALF.replace("0.5", "0.4")


@pytest.mark.parametrize(
    ("rules", "amended", "expected"),
    [
        ([ASKS_FOR_LESS], [], [HALF]),
        ([ASKS_FOR_LESS, ASKED_FOR_HALF], [], [HALF, LESS]),  # taken back
        ([ASKS_FOR_LESS], [HALF], []),
        ([ASKS_FOR_LESS], ["the measure was another"], [HALF]),
    ],
)
def test_a_change_is_silent_unless_the_form_before_is_told(book, rules, amended, expected):
    for rule in rules:
        write(book, rule, amended=[{"was": was} for was in amended])
        commit(book)
    assert [change.was for change in silent(book)] == expected


def test_a_silent_change_is_caught_before_it_is_committed(book):
    write(book, ASKS_FOR_LESS)
    assert silent(book) == [Change("R01", "not committed", HALF)]


def test_a_silent_change_is_caught_in_a_branch_that_was_merged(book):
    run(book, "checkout", "--quiet", "-b", "branch")
    write(book, ASKS_FOR_LESS)
    commit(book)
    run(book, "checkout", "--quiet", "-")
    (book / "book/03_positions.ipynb").write_text("{}")
    commit(book)
    run(book, *AUTHOR, "merge", "--quiet", "--no-edit", "branch")
    assert [change.was for change in silent(book)] == [HALF]


def test_a_change_before_the_first_verdict_needs_no_entry(book):
    rule = {"id": "R02", "rule": ASKED_FOR_HALF}
    for rule["rule"] in (ASKED_FOR_HALF, ASKS_FOR_LESS):
        rows = {"claims": [{"id": "R01", "rule": ASKED_FOR_HALF}, rule]}
        (book / ROWS).write_text(yaml.safe_dump(rows, sort_keys=False))
        commit(book)
    assert not silent(book)


def test_a_clone_without_history_is_told_apart(book, tmp_path_factory):
    shallow = tmp_path_factory.mktemp("shallow")
    run(book, "clone", "--quiet", "--depth", "1", book.as_uri(), shallow)
    assert why_not(book) == ""
    assert why_not(shallow) == "a shallow clone has no history"
    assert why_not(book / "book") == "the git history is that of another folder"
    assert why_not(tmp_path_factory.mktemp("none")) == "there is no git history"


@pytest.mark.parametrize(
    ("form", "is_same"),
    [
        ("holds if >= 0.50; otherwise refuted", True),
        ("holds if >= 0.5; the opposite was seen here if < 0; otherwise too small to see", True),
        ("holds if > 0.5; otherwise not seen at this scale", False),
        ("holds if >= 0.51; otherwise not seen at this scale", False),
        ("qualified, in part if >= 0.5; otherwise not seen at this scale", False),
        ("holds if >= 0.5; qualified if >= 0.25; otherwise not seen at this scale", False),
        ("always history, cited", False),
        ("not a rule at all", False),
    ],
)
def test_another_sign_threshold_or_kind_of_word_is_a_change_and_a_finer_word_is_none(form, is_same):
    assert same(HALF, form) == is_same
