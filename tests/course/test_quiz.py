"""The quiz bank is right: its numbers are the book's, its code makes its mistakes, its files are read."""

import contextlib
import io
import re
import sys
import zipfile
from collections import Counter
from functools import cache
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree

import nbformat
import pytest
import yaml

from course.claims.rows import BOOK
from course.quiz import bank
from course.quiz.export import gift, main, page, qti
from tests.course.harness import run

BEFORE = "import torch, math\nimport torch.nn.functional as F\nfrom torch import nn\nfrom einops import rearrange\n"
TABLE = yaml.safe_load(Path(__file__).with_name("qti.yml").read_text(encoding="utf-8"))


def right(item):
    return next(iter(item.answers))


@cache
def told(chapter):
    """What a chapter says and prints, as one line."""
    parts = []
    for cell in nbformat.read(BOOK / f"{chapter}.ipynb", as_version=4).cells:
        parts.append(cell.source)
        for output in cell.get("outputs", []):
            parts.append(output.get("text", output.get("data", {}).get("text/plain", "")))
    return " ".join(" ".join(parts).split())


def test_every_chapter_has_questions_with_names_wrong_answers_and_numbers_of_the_chapter():
    items = bank()
    of = Counter(item.chapter for item in items)
    assert {*of} == {path.stem for path in BOOK.glob("[0-9]*.ipynb")} and min(of.values()) >= 5
    assert len({"minivit-quiz", "quiz", "all", *(i.id for i in items)}) == len(items) + 3 > 150
    for item in items:
        assert len(item.answers) >= 3 and all(item.answers.values()), item.id
        assert "?" in item.ask and re.fullmatch(r"[a-zA-Z][\w-]+", item.id), item.id
        assert " ".join(item.source.split()) in told(item.chapter), item.id
        assert not item.figure or item.picture[1], item.id
    longest = sum(len(right(item)) == max(map(len, item.answers)) for item in items)
    assert longest <= len(items) / 2  # so that nobody gains much by choosing the longest


@pytest.mark.parametrize("item", [i for i in bank() if i.code], ids=lambda item: item.id)
def test_code_prints_the_right_answer_or_its_check_says_what_the_question_is_about(item):
    if item.prints:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(BEFORE + item.code, {})
        assert out.getvalue().strip() == right(item)
    else:
        report = run(item.exercise, BEFORE + item.code)
        assert report.state == "failed" and item.says and item.says in report.detail, report


def test_a_parser_of_gift_reads_one_right_answer_and_all_reasons(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "markdown", ModuleType("markdown"))  # of which none is here
    from pygiftparser import parser

    (tmp_path / "quiz.txt").write_text(gift(bank()), encoding="utf-8")
    with open(tmp_path / "quiz.txt", encoding="utf-8") as file:
        read = parser.parseFile(file)
    assert [question.title for question in read] == [item.id for item in bank()]
    for question, item in zip(read, bank(), strict=True):
        answers = question.answers.answers
        counts = [answer.fraction > 0 for answer in answers]
        assert question.valid and counts == [True] + [False] * (len(item.answers) - 1)
        assert all(answer.feedback for answer in answers)


def test_qti_is_as_the_specification_has_it_and_the_package_holds_what_it_lists(tmp_path):
    qti(bank(), tmp_path / "quiz.zip")
    with zipfile.ZipFile(tmp_path / "quiz.zip") as package:
        files = {name: package.read(name) for name in package.namelist()}
    trees = {n: ElementTree.fromstring(t) for n, t in files.items() if n.endswith(".xml")}
    assert [fault for name, tree in trees.items() for fault in faults(tree, name)] == []
    manifest = trees["imsmanifest.xml"]
    listed = {file.get("href") for file in manifest.findall(".//{*}file")}
    assert listed == {*files} - {"imsmanifest.xml"}
    names = {resource.get("identifier") for resource in manifest.findall(".//{*}resource")}
    needed = {each.get("identifierref") for each in manifest.findall(".//{*}dependency")}
    assert names == needed | {"quiz"} == {item.id for item in bank()} | {"quiz"}
    text = files["which-root.xml"].decode()
    for old, new in TABLE["faults"].items():
        assert old in text and faults(ElementTree.fromstring(text.replace(old, new)), "broken"), old


def faults(element, where):
    """What of an element and those in it the specification does not allow."""
    space, _, name = element.tag[1:].rpartition("}")
    if name not in TABLE.get(space, {}):
        return [f"{where}: {name} of {space}"]
    must, may, content = TABLE[space][name]
    texts = [element.text or "", *(child.tail or "" for child in element)]
    marks = ["#" if text.strip(" \t\r\n") else "" for text in texts]
    children = [*(child.tag.rpartition("}")[2] for child in element), ""]
    mixed = " ".join(mark + child for mark, child in zip(marks, children, strict=True))
    allowed = re.sub("&([a-z]+)", lambda group: TABLE["groups"][group[1]], content)
    own = element.attrib
    found = [] if {*must} <= {*own} <= {*must, *may} else [f"{where}: {name} has {own}"]
    found += [] if re.fullmatch(allowed, mixed) else [f"{where}: {name} holds {mixed}"]
    for key, value in {**own, name: texts[0]}.items():
        right = re.fullmatch(TABLE["values"].get(key, "(?s).*"), value, re.ASCII)
        found += [] if right else [f"{where}: {key} of {name} is {value}"]
    return found + [fault for child in element for fault in faults(child, where)]


def test_the_command_writes_the_chapters_asked_for_and_a_page_has_the_answers(tmp_path, capsys):
    assert main(["2", "3", "--out", str(tmp_path)]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"quiz.gift.txt", "quiz.qti.zip"}
    here = [item for item in bank() if item.chapter[:2] in ("02", "03")]
    assert f"{len(here)} questions" in capsys.readouterr().out
    boxes = re.findall(r'data-right="(\d)" data-claim="">\n\n((?:- .*\n)+)', page(2))
    chosen = [choices.splitlines()[int(at) - 1][2:] for at, choices in boxes]
    assert chosen == [right(item) for item in here if item.chapter[:2] == "02"]
    with pytest.raises(SystemExit):
        main(["99", "--out", str(tmp_path)])
