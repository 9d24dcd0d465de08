"""A rule that changes after its first stored verdict says so, in ``amended``."""

import json
import shutil
import subprocess

import pytest
import yaml

from book.tools.address import ROOT
from book.tools.rule_history import ROWS, changes, same, whole
from course.claims.verdict import MIME

ASKS_FOR_HALF = {">= 0.5": "holds", "otherwise": "not seen at this scale"}
ASKS_FOR_LESS = {">= 0.4": "holds", "otherwise": "not seen at this scale"}
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
HALF = "holds if >= 0.5; otherwise not seen at this scale"
LESS = HALF.replace("0.5", "0.4")


def silent(root):
    """Changes of rules whose claim has no ``amended`` entry with the form before."""
    rows = yaml.load((root / ROWS).read_bytes(), yaml.CSafeLoader)["claims"]
    before = {row["id"]: [entry["was"] for entry in row.get("amended", [])] for row in rows}
    return [
        (claim, form)
        for claim, form in changes(root)
        if not any(same(form, was) for was in before.get(claim, []))
    ]


def test_every_rule_changed_after_its_first_verdict_says_so():
    if not whole():
        pytest.skip("there is no git history, or only its end")
    assert not silent(ROOT), "add an entry to the claim's 'amended', with the form before as 'was'"


class Book:
    """A repository whose rule asks for a half in the first commit, and is answered in the next."""

    def __init__(self, root):
        self.root = root
        (root / "book").mkdir()
        self.git("init", "--quiet")
        self.write(ASKS_FOR_HALF)
        self.commit()
        output = {"data": {MIME: {"figure": "0.45", "id": "R01", "verdict": "holds"}}}
        text = json.dumps({"cells": [{"outputs": [output]}]}, indent=1)
        self.commit("book/02_attention.ipynb", text)

    def git(self, *arguments):
        subprocess.run(["git", "-C", self.root, *AUTHOR, *arguments], check=True)

    def write(self, rule, amended=(), unanswered=None):
        rows = [{"id": "R01", "rule": rule, "amended": [{"was": was} for was in amended]}]
        rows.append({"id": "R02"} | ({"rule": unanswered} if unanswered else {}))
        (self.root / ROWS).write_text(yaml.safe_dump({"claims": rows}, sort_keys=False))

    def commit(self, name="book/first_hour.ipynb", text="{}"):
        (self.root / name).write_text(text)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message", "A change")


@pytest.fixture
def book(tmp_path):
    if not shutil.which("git"):
        pytest.skip("there is no git")
    return Book(tmp_path)


@pytest.mark.parametrize(
    ("rules", "amended", "expected"),
    [
        ([ASKS_FOR_LESS], [], [HALF]),
        ([ASKS_FOR_LESS, ASKS_FOR_HALF], [], [HALF, LESS]),  # taken back
        ([ASKS_FOR_LESS], [HALF], []),
        ([ASKS_FOR_LESS], ["the measure was another"], [HALF]),
    ],
)
def test_a_change_is_silent_unless_the_form_before_is_told(book, rules, amended, expected):
    for rule in rules:
        book.write(rule, amended)
        book.commit()
    assert [form for _, form in silent(book.root)] == expected


def test_a_silent_change_is_caught_before_it_is_committed_and_in_a_branch_that_was_merged(book):
    book.git("checkout", "--quiet", "-b", "branch")
    book.write(ASKS_FOR_LESS)
    assert silent(book.root) == [("R01", HALF)]
    book.commit()
    book.git("checkout", "--quiet", "-")
    book.commit("book/03_positions.ipynb")
    book.git("merge", "--quiet", "--no-edit", "branch")
    assert silent(book.root) == [("R01", HALF)]


def test_a_change_before_the_first_verdict_needs_no_entry(book):
    for rule in (ASKS_FOR_HALF, ASKS_FOR_LESS):
        book.write(ASKS_FOR_HALF, unanswered=rule)
        book.commit()
    assert not silent(book.root)


def test_a_clone_without_history_is_told_apart(book, tmp_path_factory):
    shallow = tmp_path_factory.mktemp("shallow")
    book.git("clone", "--quiet", "--depth", "1", book.root.as_uri(), shallow)
    assert whole(book.root) and not whole(shallow) and not whole(tmp_path_factory.mktemp("none"))


def test_another_sign_threshold_or_kind_of_word_is_a_change_and_a_finer_word_is_none():
    for form, is_same in {
        "holds if >= 0.50; otherwise refuted": True,
        "holds if >= 0.5; the opposite was seen here if < 0; otherwise too small to see": True,
        "holds if > 0.5; otherwise not seen at this scale": False,
        "holds if >= 0.51; otherwise not seen at this scale": False,
        "qualified, in part if >= 0.5; otherwise not seen at this scale": False,
        "holds if >= 0.5; qualified if >= 0.25; otherwise not seen at this scale": False,
        "always history, cited": False,
        "not a rule at all": False,
    }.items():
        assert same(HALF, form) == is_same, form
