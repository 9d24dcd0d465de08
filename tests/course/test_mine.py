"""A reader's pieces in ``my_vit.py``: kept, filled, found again, and never lost."""

import ast
import sys
from types import ModuleType, SimpleNamespace

import pytest
import torch

from course import book_vit, check, mine, pieces

PATCHIFY = """
def cut(side, patch):
    return side // patch

def patchify(images, patch):
    b, c, h, w = images.shape
    r, s = cut(h, patch), cut(w, patch)
    x = images.reshape(b, c, r, patch, s, patch).permute(0, 2, 4, 1, 3, 5)
    return x.reshape(b, r * s, -1)
"""
HEADS = """
import torch.nn.functional as F, math
NOTHING, SCALE = None, 1.0

def multi_head(x, w_qkv, w_out, heads):
    q, k, v = ((x @ w).unflatten(2, (heads, -1)).transpose(1, 2) for w in w_qkv.chunk(3, 1))
    z = SCALE * F.scaled_dot_product_attention(q, k, v, NOTHING)
    return z.transpose(1, 2).flatten(2) @ w_out
"""
STUB = "def patchify(images, patch):\n    raise NotImplementedError"
SOLUTION = "@check.solution\ndef patchify(images, patch):\n    return book_vit.patchify(images, patch)"


@pytest.fixture
def file(tmp_path, monkeypatch):
    monkeypatch.setenv("MY_VIT", str(tmp_path / "my_vit.py"))
    return tmp_path / "my_vit.py"


@pytest.fixture
def checked(file, monkeypatch):
    """Runs cells in a new notebook, then the check of a piece; gives what it says."""

    def run(name, *cells):
        notebook = ModuleType("__main__")
        monkeypatch.setitem(sys.modules, "__main__", notebook)
        vars(notebook).update(In=list(cells), check=check, book_vit=book_vit)
        for cell in cells:
            exec(cell, vars(notebook))
        return getattr(check, name)(vars(notebook)[name]).message

    return run


def test_two_notebooks_keep_pieces_in_one_file_each_with_what_it_calls(file, checked):
    assert checked("patchify", STUB, PATCHIFY) == "passed (3 checks). Kept in my_vit.py."
    first = file.read_text()
    assert checked("multi_head", HEADS).endswith("Kept in my_vit.py.")
    text = file.read_text()
    assert file.with_name("my_vit.py.before").read_text() == first
    marks = "# Chapter 1: patchify, mine.", "def cut(", "# Chapter 2: multi_head, mine.", "NOTHING, "
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places) and "import math" in text[: places[0]]
    images = torch.randn(2, 3, 4, 8)
    assert torch.equal(mine.load().patchify(images, 2), book_vit.patchify(images, 2))


def test_a_new_version_replaces_a_piece_alone_and_all_before_are_kept(file, checked):
    checked("patchify", PATCHIFY)
    file.write_text(file.read_text().replace("    b, c,", "    # by hand\n    b, c,") + "\nOWN = 1\n")
    by_hand = file.read_text()
    checked("multi_head", HEADS)
    assert "# by hand" in file.read_text()
    for name in "again", "once_more":
        checked("patchify", PATCHIFY.replace("cut", name))
    assert "def once_more(" in file.read_text() and "def cut(" not in file.read_text()
    assert by_hand in file.with_name("my_vit.py.before").read_text()


def test_a_skipped_piece_is_filled_from_the_book_and_says_so(file, checked, capsys):
    checked("patchify", PATCHIFY)
    model = mine.new()
    said = "my_vit.py: multi_head, block, ViT filled from the book\n"
    assert capsys.readouterr().out == said
    text = file.read_text()
    for name, number in pieces.PIECES.items():
        whose = "mine" if name == "patchify" else "filled from the book"
        assert f"# Chapter {number}: {name}, {whose}.\n" in text
    assert model(torch.zeros(2, 1, 8, 8)).shape == (2, 10)
    mine.load()
    assert capsys.readouterr().out == "" and file.read_text() == text


def test_the_books_solution_fills_a_piece_and_never_replaces_the_readers(file, checked):
    checked("patchify", STUB, SOLUTION)
    assert "patchify, filled from the book." in file.read_text()
    checked("patchify", PATCHIFY, SOLUTION)
    assert "patchify, mine." in file.read_text()
    text = file.read_text()
    checked("patchify", STUB, SOLUTION)
    assert file.read_text() == text


def test_without_a_piece_of_the_readers_a_new_file_is_the_books(file, capsys):
    mine.load()
    assert file.read_text() == pieces.BOOK


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ([PATCHIFY.replace("def cut", "cut = max(0, 1)\ndef cut").replace("cut(h", "(cut, len)[1]("
          "[1] * h) // (max(")], "Kept"),
        (["side = abs(-1)", PATCHIFY.replace("cut(h, patch)", "h // patch * side")],
         "patchify uses side, which a cell computes: compute it inside patchify"),
        (["from functools import partial", PATCHIFY.replace("def patchify", "def mine")
          + "\npatchify = mine"], "there it would be called"),
    ],
)  # fmt: skip
def test_what_cannot_stand_in_the_file_is_said_in_a_sentence(file, checked, cells, said):
    message = checked("patchify", *cells)
    assert message.startswith("passed (3 checks). Not kept in my_vit.py: "), message
    assert said in message and not file.exists()
