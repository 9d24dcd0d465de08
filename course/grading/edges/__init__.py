"""What other graders take of the checks: otter's tests, Gradescope's zip, a notebook of nbgrader.

``python -m course otter 3``, ``gradescope 3`` and ``nbgrader 3`` write those of chapter 3.
"""

import argparse
import zipfile
from collections.abc import Sequence
from pathlib import Path

import nbformat
from jinja2 import Environment, FileSystemLoader

from course.definitions import statements
from course.grading.answers import BOOK, REFUSED, ROOT, Chapter, chapter, exercises, solution
from course.grading.grade import POINTS

TEMPLATES = Environment(loader=FileSystemLoader(Path(__file__).parent), keep_trailing_newline=True)
ROOMS, KINDS = ("course", "minivit", "vitlab"), (".py", ".yml", ".html")
TODO = "raise NotImplementedError"
REGION = f"### BEGIN SOLUTION\n    {TODO}\n    ### END SOLUTION"


def _asked(command: str, arguments: Sequence[str] | None, out: str) -> tuple[Chapter, Path]:
    parser = argparse.ArgumentParser(prog=f"python -m course {command}", description=__doc__)
    parser.add_argument("chapter", type=int, choices=exercises(), metavar="N", help="its number")
    parser.add_argument("--out", type=Path, default=Path(out), help=f"where to write ({out})")
    options = parser.parse_args(arguments)
    return chapter(options.chapter), options.out


def otter(arguments: Sequence[str] | None = None) -> int:
    """A file of otter's tests for each exercise."""
    of, out = _asked("otter", arguments, "tests")
    out.mkdir(parents=True, exist_ok=True)
    for name in of.exercises:
        text = TEMPLATES.get_template("otter.txt").render(name=name, points=POINTS)
        (out / f"{name}.py").write_text(text, encoding="utf-8")
    print(f"{len(of.exercises)} files in {out}")
    return 0


def gradescope(arguments: Sequence[str] | None = None) -> int:
    """The zip that Gradescope makes its autograder of: this grader, and one chapter."""
    of, out = _asked("gradescope", arguments, "autograder.zip")
    every = (path for room in ROOMS for path in ROOT.glob(f"{room}/**/*"))
    files = [path for path in every if path.suffix in KINDS]
    refused = [each for name in of.exercises for each in REFUSED.get(name, ())]
    for number in {of.number, *(int(each.split("@")[1]) for each in refused if "@" in each)}:
        files += BOOK.glob(f"**/{number:02}_*.ipynb")
    files += [ROOT / "requirements.txt", BOOK / "claims.yml"]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for path in files:
            file.write(path, path.relative_to(ROOT))
        for name in ("run_autograder", "setup.sh"):
            info = zipfile.ZipInfo(name)
            info.external_attr = 0o755 << 16
            file.writestr(info, TEMPLATES.get_template(name).render(number=of.number))
    print(out)
    return 0


def nbgrader(arguments: Sequence[str] | None = None) -> int:
    """A short notebook of stubs and tests, for nbgrader's ``source`` folder."""
    of, out = _asked("nbgrader", arguments, "exercises.ipynb")
    stubs = {c.id: c for c in nbformat.read(BOOK / f"{of.name}.ipynb", as_version=4).cells}
    code = "\n".join(solution(of, name) for name in of.exercises)
    imports = dict.fromkeys(each.text for each in statements(code, 0) if each.imports)
    text = "\n".join([*imports, "", "from course.grading.plain import require"])
    start = nbformat.v4.new_code_cell(text, id="start")
    cells = [nbformat.v4.new_markdown_cell(f"# {of.name.replace('_', ' ')}", id="title"), start]
    for name in of.exercises:
        stub = stubs[of.cells[name]].source.replace(TODO, REGION)
        test = f'require("{name}", {name})'
        cells += [_cell(name, stub, solution=True), _cell(f"test-{name}", test, grade=True)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), out)
    print(out)
    return 0


def _cell(name: str, source: str, solution: bool = False, grade: bool = False) -> dict:
    own = {"schema_version": 3, "grade_id": name, "solution": solution, "grade": grade}
    own |= {"locked": grade, "task": False} | ({"points": POINTS} if grade else {})
    return nbformat.v4.new_code_cell(source, id=name.replace("_", "-"), metadata={"nbgrader": own})
