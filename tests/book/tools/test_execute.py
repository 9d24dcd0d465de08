"""``make notebooks``: an equal result gives an empty diff, on another processor too."""

import base64
import io

import numpy as np
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

from book.tools.execute import keep_stored
from course.claims.ledger import MIME

PIXELS = np.random.default_rng(0).integers(0, 200, (20, 30, 3)).astype(np.uint8)


def encoded(pixels, kind):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **({"lossless": True} if kind == "WEBP" else {}))
    return base64.b64encode(file.getvalue()).decode()


def output(pixels, said):
    page = f'<img src="data:image/webp;base64,{encoded(pixels, "WEBP")}"> {said}'
    return {"image/png": encoded(pixels, "PNG") + "\n", "text/html": page}


def executed(old, new):
    """What is stored of new outputs where old ones stand."""
    notebooks = [
        new_notebook(cells=[new_code_cell(outputs=[new_output("display_data", data)])])
        for data in (old, new)
    ]
    keep_stored(*notebooks)
    return notebooks[1].cells[0].outputs[0].data


def test_an_image_that_looks_the_same_stays_byte_for_byte():
    nearly = PIXELS.copy()
    nearly[3, 4] += 50  # a dot at the edge of a line
    old = output(PIXELS, "a")
    assert executed(old, output(nearly, "a")) == old


@pytest.mark.parametrize("change", ["a line moved", "size"])
def test_another_image_is_stored(change):
    other = PIXELS[1:] if change == "size" else PIXELS.copy()
    if change == "a line moved":
        other[8] = 255
    new = output(other, "a")
    assert executed(output(PIXELS, "a"), new) == new


def test_other_words_beside_an_image_are_stored():
    nearly = PIXELS.copy()
    nearly[3, 4] += 50
    assert executed(output(PIXELS, "a"), output(nearly, "b"))["text/html"].endswith(" b")


def test_the_last_digits_of_a_figure_change_only_with_what_is_shown():
    def stored(text, digits):
        output = new_output(
            "display_data", {"text/plain": text}, metadata={MIME: {"seeds": [digits]}}
        )
        return new_notebook(cells=[new_code_cell(outputs=[output])])

    for text, expected in (("0.3", 0.301), ("0.4", 0.404)):
        new = stored(text, 0.302 if text == "0.3" else 0.404)
        keep_stored(stored("0.3", 0.301), new)
        assert new.cells[0].outputs[0].metadata[MIME] == {"seeds": [expected]}


@pytest.mark.parametrize("moved", [False, True])
def test_the_form_for_phones_is_stored_anew_only_where_it_looks_otherwise(moved):
    def stored(pixels):
        output = new_output("display_data", {"image/png": encoded(PIXELS, "PNG")})
        output.metadata["narrow"] = encoded(pixels, "WEBP")
        return new_notebook(cells=[new_code_cell(outputs=[output])])

    other = PIXELS.copy()
    other[3, 4] += 50
    if moved:
        other[8] = 255
    old, new = stored(PIXELS), stored(other)
    keep_stored(old, new)
    kept = new.cells[0].outputs[0].metadata["narrow"]
    assert kept == encoded(other if moved else PIXELS, "WEBP")


@pytest.mark.parametrize(
    ("stored", "new", "kept"),
    [("loss 0.31", "loss 0.32", True), ("19 of 20", "20 of 20", False), ("0.0", "0.1", False)],
)
def test_a_text_that_another_processor_may_print_so_stays_as_it_is(stored, new, kept):
    def notebook(text):
        stream = new_output("stream", name="stdout", text=text)
        return new_notebook(cells=[new_code_cell(outputs=[stream, new_output("display_data", {"text/plain": text})])])  # fmt: skip

    old, again = notebook(stored), notebook(new)
    keep_stored(old, again)
    stream, shown = again.cells[0].outputs
    assert [stream.text, shown.data["text/plain"]] == [stored if kept else new] * 2
