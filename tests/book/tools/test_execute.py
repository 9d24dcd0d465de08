"""``make notebooks`` keeps equal results, and ``make test-machines`` plays other processors and goes on."""

import base64
import io
import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from nbclient.output_widget import OutputWidget
from nbformat.v4 import new_code_cell, new_notebook, new_output
from PIL import Image

from book.tools import machines as tool
from book.tools import notebooks
from book.tools.address import ROOT
from book.tools.execute import keep_stored
from course.claims.ledger import MIME, harvest, machines
from vitlab.claims.rules import DEPENDS, UNCERTAIN, YES, word_of

PIXELS = np.random.default_rng(0).integers(0, 200, (20, 30, 3)).astype(np.uint8)
NEARLY = PIXELS.copy()
NEARLY[3, 4] += 50  # a dot at the edge of a line
MOVED = PIXELS.copy()
MOVED[8] = 255


def encoded(pixels, kind):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **({"lossless": True} if kind == "WEBP" else {}))
    return base64.b64encode(file.getvalue()).decode()


def data(pixels, said="a"):
    page = f'<img src="data:image/webp;base64,{encoded(pixels, "WEBP")}"> {said}'
    return {"image/png": encoded(pixels, "PNG") + "\n", "text/html": page}


def executed(*outputs):
    """What is stored of a new output where an old one stands, each its data and metadata."""
    shown = ([new_output("display_data", d, metadata=m)] for d, m in outputs)
    old, new = (new_notebook(cells=[new_code_cell(outputs=each)]) for each in shown)
    keep_stored(old, new)
    (kept,) = new.cells[0].outputs
    return kept.data, kept.metadata


@pytest.mark.parametrize("new", [NEARLY, MOVED, PIXELS[1:]], ids=["a dot", "a line", "size"])
def test_an_image_that_looks_the_same_stays_byte_for_byte_and_another_is_stored(new):
    stored, _ = executed((data(PIXELS), {}), (data(new), {}))
    assert stored == data(PIXELS if new is NEARLY else new)
    stored, _ = executed((data(PIXELS), {}), (data(new, "b"), {}))
    assert stored["text/html"] == data(new, "b")["text/html"], "other words beside it"


@pytest.mark.parametrize("other, kept", [(NEARLY, PIXELS), (MOVED, MOVED)])
def test_the_form_for_phones_is_stored_anew_only_where_it_looks_otherwise(other, kept):
    png = {"image/png": encoded(PIXELS, "PNG")}
    outputs = [(png, {"narrow": encoded(pixels, "WEBP")}) for pixels in (PIXELS, other)]
    assert executed(*outputs)[1]["narrow"] == encoded(kept, "WEBP")


@pytest.mark.parametrize("text, new, expected", [("0.3", 0.302, 0.301), ("0.4", 0.404, 0.404)])
def test_the_last_digits_of_a_figure_change_only_with_what_is_shown(text, new, expected):
    pairs = ("0.3", 0.301), (text, new)
    outputs = [({"text/plain": t}, {MIME: {"seeds": [n]}}) for t, n in pairs]
    assert executed(*outputs)[1][MIME] == {"seeds": [expected]}


@pytest.mark.parametrize(
    ("stored", "new", "kept"),
    [("loss 0.31", "loss 0.32", True), ("19 of 20", "20 of 20", False), ("0.0", "0.1", False)],
)
def test_a_text_that_another_processor_may_print_so_stays_as_it_is(stored, new, kept):
    data, _ = executed(({"text/plain": stored}, {}), ({"text/plain": new}, {}))
    assert data["text/plain"] == (stored if kept else new)


def test_copies_that_jupyterlab_keeps_are_no_notebooks_of_the_book(tmp_path, monkeypatch):
    for name in ("01_one", "solutions/01_one", ".ipynb_checkpoints/01_one-checkpoint"):
        (tmp_path / "book" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / f"book/{name}.ipynb").touch()
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    names = [path.relative_to(tmp_path / "book").as_posix() for path in notebooks.of_the_book()]
    assert names == ["01_one.ipynb", "solutions/01_one.ipynb"]


def test_nothing_is_sent_to_a_kernel_while_its_answer_is_awaited(tmp_path, monkeypatch):
    sent = []
    monkeypatch.setattr(OutputWidget, "send", lambda self, message: sent.append(message))
    code = "from ipywidgets import interact\n\n@interact(x=(0, 9))\ndef f(x=3):\n    print(x)"
    notebook = new_notebook(cells=[new_code_cell(code)])
    notebooks.run(notebook, tmp_path)
    assert not sent
    assert "interactive" in str(notebook.cells[0].outputs)


def test_each_notebook_begins_without_a_my_vit(tmp_path):
    code = "import os\nprint(os.environ['MY_VIT'], os.listdir(os.environ['MY_VIT']))"
    printed = set()
    with notebooks.kernels(""):
        for _ in range(2):
            notebook = new_notebook(cells=[new_code_cell(code)])
            notebooks.run(notebook, tmp_path)
            printed.add(notebook.cells[0].outputs[0].text)
    assert len(printed) == 2 and all(text.endswith(" []\n") for text in printed)


REPORT = """<testsuites><testsuite>
<testcase name="Cell 1" time="2"><properties><property name="figure" value='{}'/></properties></testcase>
<testcase classname="book.01" name="Cell 2" time="1"><failure message="other digits"/></testcase>
</testsuite></testsuites>"""

# Verdicts whose interval reaches a threshold. Another one here asks for more seeds or another figure.
ON_THE_EDGE = {"C18", "H03", "H05", "H14", "H19", "H20", "H25", "H30", "H32", "H34", "H36", "H37"}
ON_THE_EDGE |= {"V01", "H21", "H31", "H38", "H39", "L17", "R29", "R32", "R62"}
ON_THE_EDGE |= {"B06", "B07", "C19", "N04", "N06", "N09", "W03", "W06"}


def test_a_run_counts_and_goes_on_with_the_part_that_was_not_finished(tmp_path, monkeypatch):
    """With a pytest that ends with these codes, and writes a report each time."""
    codes, environments = [1, 2, 0], []

    def run(command, env, **_):
        environments.append(env)
        about = json.dumps({"id": "R01", "seeds": [1.0, 2.0, 6.0]})
        report = command[command.index("--junitxml") + 1]
        Path(report).write_text(REPORT.format(about), encoding="utf-8")
        return SimpleNamespace(returncode=codes.pop(0))

    monkeypatch.setattr(tool.subprocess, "run", run)
    monkeypatch.setattr(tool, "on_pages", lambda: {"R01": 2.5})
    with pytest.raises(RuntimeError, match="sse, book: pytest ended with 2"):
        tool.play("sse", tool.RUNS["sse"], tmp_path)
    assert tool.read("sse", tmp_path)["cells"] == 0
    tool.play("sse", tool.RUNS["sse"], tmp_path)
    assert [env["ATEN_CPU_CAPABILITY"] for env in environments] == ["default"] * 3
    row = tool.read("sse", tmp_path)
    assert (row["tests"], row["cells"], row["moved"]) == (2, 2, {"R01": 0.5})
    assert row["failed"] == ["book.01: Cell 2"] * 2


def test_stored_runs_stand_in_contributing_none_is_red_and_verdicts_on_an_edge_say_so():
    assert {row["run"] for row in machines()["runs"]} >= {"as-it-is", "avx2", "sse"}
    assert tool.table(machines()["runs"]) in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {row["run"]: row["failed"] for row in machines()["runs"] if row["failed"]} == {}
    edge = {name: f.verdict for name, f in harvest().items() if "no farther than" in f.margin}
    assert set(edge) == ON_THE_EDGE
    for name, verdict in edge.items():  # the weakest word on the interval, or none
        assert word_of(verdict) in (UNCERTAIN, DEPENDS, *YES[1:]), name
