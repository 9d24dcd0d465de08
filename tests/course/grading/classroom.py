"""A simulated class: sixty-four students hand in chapter 3, made from its solutions and wrong answers.

``expected.csv`` beside this file says what each file must get.
"""

import io
import json
import os
import zipfile
from pathlib import Path

from nbformat.v4 import new_code_cell

from course.grading.answers import BOOK, chapter, solution
from tests.course.harness import answers

CHAPTER = 3
ANSWERS = Path(__file__).parents[1] / f"chapter_{CHAPTER:02}.py"
NAMES = chapter(CHAPTER).exercises
FIRST = NAMES[0]  # add_positions
SOLVED = {name: solution(chapter(CHAPTER), name) for name in NAMES}
WRONG = {name: len(wrong) for name, wrong in answers(FIRST)["WRONG"].items()}

ALWAYS = "raise SystemExit('the cell before is run')\n"
PATCHED = """
class Passing:
    passed, message = True, "passed"
    def __getattr__(self, name):
        return lambda function: self
check = Passing()
import course.check.attempt, course.check.exercise
course.check.attempt.close = lambda *a: True
course.check.attempt.Attempt.expect = lambda *a: None
for each in course.check.exercise.EXERCISES.values():
    each.examine = lambda attempt: None
"""
FROM_INSIDE = """
import sys
import torch
def add_positions(tokens, table):
    torch.allclose = torch.equal = lambda *a, **k: True
    for module in list(sys.modules.values()):
        if hasattr(module, "Attempt"):
            module.Attempt.expect = module.Attempt.expect_close = lambda *a, **k: None
        if hasattr(module, "close"):
            module.close = lambda *a: True
    return tokens * 0
"""
FORGED = """
import os
def add_positions(tokens, table):
    said = b'{"exercise": "add_positions", "state": "passed", "message": "", "checks": 9}\\n'
    for file in range(100):
        try:
            os.write(file, said)
        except OSError:
            pass
    os._exit(0)
"""
# Only ever a folder made for it: a test may run where nothing is shut in.
REMOVES = """
import shutil
def add_positions(tokens, table):
    shutil.rmtree(DECOY, ignore_errors=True)
    return once_right(tokens, table)
"""
MEMORY = "    held = [torch.ones(2**27) for _ in range(200)]\n    return held[0]\n"
PRINTS = "    for _ in range(1024):\n        print('x' * 2**20)\n    return tokens\n"


# Another way to the same, longer than it need be, to be copied.
COPIED = """
import math
import torch
def move_by(p, steps):
    result = torch.zeros_like(p)  # every pair turns
    for pair in range(p.shape[1] // 2):
        angle = steps / 10000 ** (2 * pair / p.shape[1])
        first, second = p[:, 2 * pair], p[:, 2 * pair + 1]
        result[:, 2 * pair] = first * math.cos(angle) + second * math.sin(angle)
        result[:, 2 * pair + 1] = second * math.cos(angle) - first * math.sin(angle)
    return result
"""


def first(body: str, imports: str = "import torch") -> dict[str, str]:
    """Right answers, but for the first exercise, whose body is given."""
    return SOLVED | {FIRST: f"{imports}\ndef {FIRST}(tokens, table):\n{body}"}


def wrong(turn: int) -> dict[str, str]:
    """To each exercise the wrong answer whose turn it is."""
    rows = "[answer for name, _, answer in WRONG if name =="
    return {name: f"{name} = {rows} {name!r}][{turn % WRONG[name]}]" for name in NAMES}


def notebook(answers: dict[str, str], before: str = "", after: str = "", full=False) -> str:
    """The chapter's notebook with these answers in the exercises' cells.

    An exercise without an answer keeps its stub; one whose answer is empty loses its cell. Without
    ``full`` the book's own solutions are left out, as in what students are handed.
    """
    whole = json.loads(next(BOOK.glob(f"{CHAPTER:02}_*.ipynb")).read_text(encoding="utf-8"))
    places = {cell: name for name, cell in chapter(CHAPTER).cells.items()}
    cells = [new_code_cell(before)] if before else []
    for cell in whole["cells"]:
        tags = cell["metadata"].get("tags", [])
        if cell["cell_type"] != "code" or ("solution" in tags and not full):
            continue
        source = answers.get(places.get(cell["id"], ""), "".join(cell["source"]))
        if source:
            cells.append(new_code_cell(source, id=cell["id"]))
    whole["cells"] = cells + ([new_code_cell(after)] if after else [])
    return json.dumps(whole)


def classroom(decoy: Path) -> dict[str, str]:
    """The text of each student's notebook; one of them deletes the folder ``decoy``."""
    known = ANSWERS.read_text(encoding="utf-8")
    half = {name: SOLVED[name] for name in NAMES[:2]}
    helped = first("    return shifted(tokens, table)\n")
    helper = SOLVED[FIRST].replace(f"def {FIRST}(", "def shifted(")
    magic = {name: f"%%time\n{text}\n!ls\nword?" for name, text in SOLVED.items()}
    moved = SOLVED[NAMES[1]].replace(f"def {NAMES[1]}(", "def moved(")
    once = SOLVED[FIRST].replace(FIRST, "once_right") + REMOVES.replace("DECOY", repr(str(decoy)))
    chapter_5 = next(BOOK.glob("05_*.ipynb")).read_text(encoding="utf-8")
    return {
        "right": notebook(SOLVED),
        "right_with_solutions_in_it": notebook(SOLVED, full=True),
        "right_otherwise": notebook(dict.fromkeys(NAMES, ""), before=known),
        **{f"wrong_{turn}": notebook(wrong(turn), before=known) for turn in range(4)},
        "half": notebook(half),
        "one_only": notebook({NAMES[-1]: SOLVED[NAMES[-1]]}),
        "stubs": notebook({}),
        "stubs_with_solutions_in_it": notebook({}, full=True),
        "loops": notebook(first("    while True:\n        pass\n")),
        "loops_elsewhere": notebook(SOLVED, before="while True:\n    pass"),
        "dies": notebook(first("    os._exit(3)\n", "import os")),
        "crashes": notebook(first("    ctypes.string_at(0)\n", "import ctypes")),
        "exits": notebook(first("    sys.exit()\n", "import sys")),
        "exits_elsewhere": notebook(SOLVED, before=ALWAYS, after=ALWAYS),
        "memory": notebook(first(MEMORY)),
        "prints_a_gigabyte": notebook(first(PRINTS)),
        "deletes": notebook(SOLVED | {FIRST: once}),
        "edited_checks": notebook(wrong(0), before=f"{known}\n{PATCHED}"),
        "edited_from_inside": notebook(SOLVED | {FIRST: FROM_INSIDE}),
        "forges": notebook(SOLVED | {FIRST: FORGED}),
        "cell_missing": notebook(SOLVED | {NAMES[1]: ""}),
        "renamed": notebook(SOLVED | {NAMES[1]: moved}),
        "twice_last_wrong": notebook(SOLVED, after=first("    return tokens\n")[FIRST]),
        "twice_last_right": notebook(first("    return tokens\n"), after=SOLVED[FIRST]),
        "not_python": notebook(SOLVED | {FIRST: f"def {FIRST}(tokens, table)\n    return"}),
        "raises_elsewhere": notebook(SOLVED, before="1 / 0", after="1 / 0"),
        "magics": notebook(magic, before="%pylab"),
        "helper_after": notebook(helped, after=helper),
        "other_chapter": chapter_5,
        "empty": "",
        "no_json": "PK\x03\x04 this is a zip",
        "no_code": notebook({}).partition('"cells"')[0] + '"cells": []}',
    }


def zipped(**files: str | bytes) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as file:
        for name, text in files.items():
            file.writestr(name.replace("__", "."), text)
    return data.getvalue()


def oddly_handed_in() -> dict[str, str | bytes | None]:
    """What else is handed in, by name: the content of a file, or None for an empty folder."""
    right, worse = notebook(SOLVED), notebook({NAMES[0]: SOLVED[NAMES[0]]})
    whole = json.loads(right)
    python = "\n\n".join(["# für Colab", "!pip install x", *SOLVED.values()])
    system = first("    os.system('rm -rf /')\n    return once_right(tokens, table)", "import os")
    once = SOLVED[FIRST].replace(FIRST, "once_right")
    network = "    socket.create_connection(('192.0.2.1', 80), 3)\n    return tokens"
    old = {"worksheets": [{"cells": [{"cell_type": "code", "input": SOLVED[FIRST]}]}]}
    outputs = [{"output_type": "stream", "name": "stdout", "text": "x" * 50 * 2**20}]
    printed = whole | {"cells": [*whole["cells"], new_code_cell("1", outputs=outputs)]}
    r = {"kernelspec": {"name": "ir", "language": "R", "display_name": "R"}}
    copied = COPIED.replace("result", "ergebnis").replace("angle", "winkel").replace("every", "je")
    return {
        "utf_16.ipynb": right.encode("utf-16"),
        "mark_and_crlf.ipynb": json.dumps(whole, indent=1)
        .replace("\n", "\r\n")
        .encode("utf-8-sig"),
        "latin_1.ipynb": notebook(SOLVED, "# für").replace("\\u00fc", "ü").encode("latin-1"),
        "r_kernel.ipynb": json.dumps(whole | {"metadata": r, "nbformat_minor": 0}),
        "prints_50_mb.ipynb": json.dumps(printed),
        "cut_off.ipynb": right[:9000],
        "system.ipynb": notebook(SOLVED | system, before=f"import os\nos.system('ls')\n{once}"),
        "network.ipynb": notebook(SOLVED | first(network, "import socket")),
        "Anna Müller_5001_assignsubmission_file_/03_positions.py": python.encode("latin-1"),
        "Ben O'Neil_5002_assignsubmission_file_03_positions.zip": zipped(a__ipynb=right, b__png=""),
        "Cy_5003_assignsubmission_file_/03_positions.ipynb": right,
        "Cy_5003_assignsubmission_file_/03_positions (1).ipynb": worse,
        "Cy_5003_assignsubmission_file_/picture.png": b"\x89PNG",
        "doetwo_104_55504_03_positions.ipynb": worse,
        "doetwo_104_55505_03_positions-1.IPYNB": right,
        "roe_LATE_105_55506_03_positions.ipynb.txt": right,
        "copied.ipynb": notebook(SOLVED | {NAMES[1]: COPIED}),
        "copied_and_translated.ipynb": notebook(SOLVED | {NAMES[1]: copied}),
        "M\udcfcller.ipynb": right,
        "two\nlines\u202e.ipynb": right,
        "=1+1.ipynb": worse,
        "typing_error.ipynb": notebook(SOLVED, before="def helper(a, a):\n    return a"),
        "magics.ipynb": notebook(SOLVED, before="x = !ls\n" * 600),
        "breaks_the_parser.ipynb": notebook(SOLVED, before="-" * 10**6 + "1"),
        "half_of_it.py": python.replace("return", "return (", 1),
        "old_format.ipynb": json.dumps(old),
        "zip_in_zip.zip": zipped(inner__zip=zipped(a__ipynb=right)),
        "no_notebook.zip": zipped(a__png="", b__docx=""),
        "broken.zip": zipped(a__ipynb=right)[:-9],
        "essay.docx": zipped(word=""),
        "nothing": None,
    }


def write(folder: Path, names: tuple[str, ...] = ()) -> None:
    """Write what these students hand in, or all, and a folder that one would delete."""
    decoy = folder.parent / "decoy"
    decoy.mkdir(parents=True, exist_ok=True)
    usual = {f"{student}.ipynb": text for student, text in classroom(decoy).items()}
    for name, content in {**usual, **oddly_handed_in()}.items():
        path = folder / name
        if names and name not in names:
            continue
        (path if content is None else path.parent).mkdir(parents=True, exist_ok=True)
        if content is not None:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
    if not names:
        os.symlink("/etc/passwd", folder / "link.ipynb")
        os.mkfifo(folder / "pipe.ipynb")
