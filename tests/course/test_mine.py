"""A reader's pieces in ``my_vit.py``: kept, filled, found again, and never lost."""

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
import torch.nn.functional as F, math as m
NOTHING, SCALE = None, 1.0

def multi_head(x, w_qkv, w_out, heads):
    q, k, v = ((x @ w).unflatten(2, (heads, -1)).transpose(1, 2) for w in w_qkv.chunk(3, 1))
    z = m.sqrt(SCALE) * F.scaled_dot_product_attention(q, k, v, NOTHING)
    return z.transpose(1, 2).flatten(2) @ w_out
"""
STUB = "def patchify(images, patch):\n    raise NotImplementedError"
SOLUTION = f"@check.solution\n{STUB}".replace("raise NotImplementedError", "return book_vit.patchify(images, patch)")  # fmt: skip


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
    assert checked("patchify", STUB, PATCHIFY) == "passed (6 checks). Kept in my_vit.py."
    first = file.read_text()
    assert checked("multi_head", HEADS).endswith("Kept in my_vit.py.")
    text = file.read_text()
    head, before = file.with_name("my_vit.py.before").read_text().split("\n", 1)
    assert head.startswith("# Replaced on 2") and before == first
    pieces_of = "# Chapter 1: patchify, mine.", "def cut(", "# Chapter 2: multi_head, mine."
    marks = *pieces_of, "NOTHING, "
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places) and "import math as m" in text[: places[0]]
    images = torch.randn(2, 3, 4, 8)
    assert torch.equal(mine.load().patchify(images, 2), book_vit.patchify(images, 2))


def test_a_new_version_replaces_a_piece_alone_and_all_before_are_kept(file, checked):
    checked("patchify", PATCHIFY)
    by_hand = file.read_text().replace("    b, c,", "    # by hand\n    b, c,")
    file.write_text(f"{by_hand}\nOWN = 1\n")
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


COMPUTED = ["side = abs(-1)", PATCHIFY.replace("cut(h, patch)", "h // patch * side")]
RENAMED = [PATCHIFY.replace("def patchify", "def pieces") + "\npatchify = pieces"]
HIDDEN = ["exec('def cut(side, patch): return side // patch')", PATCHIFY[PATCHIFY.index("def p") :]]


@pytest.mark.parametrize(("name", "cells", "said"), [
    ("patchify", COMPUTED, "uses side, which a cell computes: compute it inside patchify"),
    ("patchify", RENAMED, "there it would be called patchify, and so it should be here"),
    ("patchify", HIDDEN, "there it fails (NameError: name 'cut'"),
    ("multi_head", ["def cut(x):\n    return x", HEADS.replace("m.sqrt(SCALE)", "cut(SCALE)")],
     "patchify has another cut in my_vit.py: rename one"),
])  # fmt: skip
def test_what_cannot_stand_in_the_file_is_said_in_a_sentence(file, checked, name, cells, said):
    checked("patchify", PATCHIFY)
    before = file.read_text()
    message = checked(name, *cells)
    assert ". Not kept in my_vit.py: " in message and said in message
    assert file.read_text() == before


@pytest.mark.parametrize("garbage", [b"def (", b"\xff\xfe", b"x = 1\0"])
def test_garbage_in_the_file_is_one_clear_error_and_nothing_is_lost(file, checked, garbage):
    file.write_bytes(garbage)
    message = checked("patchify", PATCHIFY)
    assert "passed (6 checks). Not kept in my_vit.py: my_vit.py cannot be read as Python" in message
    with pytest.raises(ValueError, match="cannot be read as Python"):
        mine.load()
    with pytest.raises(ValueError, match="expected the text of a my_vit.py; nothing was changed"):
        mine.upload("def (")
    assert file.read_bytes() == garbage and [*file.parent.iterdir()] == [file]


def test_what_is_no_piece_in_the_file_stays_and_an_error_in_it_is_told(file, checked):
    file.write_text("import os\n\nBORN = 1  # mine\n")
    assert checked("patchify", PATCHIFY).endswith("Kept in my_vit.py.")
    assert file.read_text().startswith("import os\n\nBORN = 1  # mine\n")
    file.write_text(file.read_text() + "\n1 / 0\n")
    text = file.read_text()
    with pytest.raises(ValueError, match="my_vit.py fails, and was not changed: ZeroDivisionError"):
        mine.load()
    assert file.read_text() == text


def test_an_interrupted_writing_leaves_the_file_as_it_was(file, checked, monkeypatch):
    checked("patchify", PATCHIFY)
    before = file.read_text()
    monkeypatch.setattr("pathlib.Path.replace", lambda *paths: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        checked("multi_head", HEADS)
    assert file.read_text() == before


def test_a_lost_file_comes_back_by_upload_or_by_its_text(file, checked, monkeypatch, capsys):
    checked("patchify", PATCHIFY)
    text, given = file.read_text(), []
    mine.download()
    mine.upload()
    told = capsys.readouterr().out
    assert told == f"{file}\nPut it at {file}, or paste its text: mine.upload(r'''...''')\n"
    file.unlink()
    files = SimpleNamespace(download=given.append, upload=lambda: {"my_vit.py": text.encode()})
    monkeypatch.setitem(sys.modules, "google.colab", SimpleNamespace(files=files))
    mine.load("patchify")
    assert "mine.upload()" in capsys.readouterr().out
    mine.upload()
    assert file.read_text() == text
    mine.download()
    assert given == [str(file)]
    assert checked("multi_head", HEADS).endswith("from course import mine; mine.download()")
    file.unlink()
    mine.upload(text)
    assert file.read_text() == text


def test_weights_are_kept_beside_the_file_and_trained_again_where_they_do_not_fit(file, capsys):
    model = mine.new(seed=1)
    mine.save(model)
    kept = mine.trained()
    assert all(map(torch.equal, kept.parameters(), model.parameters()))
    file.with_suffix(".pt").write_bytes(b"damaged")
    capsys.readouterr()
    mine.trained(steps=2)
    assert "my_vit.pt has no weights for it: trained for 2 steps" in capsys.readouterr().out
    package = mine.as_package(kept.double())
    images = torch.randn(3, 1, 8, 8).double()
    assert torch.allclose(package(images), kept(images), atol=1e-12)


def test_outside_a_notebook_nothing_is_kept(file):
    assert check.patchify(book_vit.patchify).message == "passed (6 checks)"
    assert not file.exists()
