"""Starts examiners: the processes that check answers."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from course.grading.answers import Answer
from course.grading.chapters import BOOK, ROOT

START = (
    f"import sys; sys.path.insert(0, {str(ROOT)!r}); "
    "from course.grading.examiner import main; main()"
)
TO_IMPORT = 60  # seconds that an examiner may take besides the answers


class CannotGrade(Exception):
    """It is the grader, not a student, that something is wrong with."""


def examined(
    answers: list[Answer], seconds: float, megabytes: int, hidden: tuple[Path, ...] = ()
) -> tuple[dict[str, dict], tuple[str, ...]]:
    """Check answers in one examiner.

    Returns:
        State, message and expectations met of each answer that has a source; and what this
        machine lacks to shut an examiner in.

    Raises:
        CannotGrade: No examiner starts.
    """
    sources = {each.exercise: each.source for each in answers if each.source}
    if not sources:
        return {}, ()
    scratch = Path(tempfile.mkdtemp(prefix="grade-"))
    request = {
        "answers": sources,
        "seconds": seconds,
        "megabytes": megabytes,
        "scratch": str(scratch),
        "hidden": [str(path) for path in _can_hide((BOOK, ROOT / "tests", *hidden))],
    }
    try:
        within = len(sources) * (seconds + 10) + TO_IMPORT
        lines, said = _run(json.dumps(request), scratch, within)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if not lines:
        raise CannotGrade(f"no examiner starts here: {said or 'it took too long'}")
    outcomes = {line.pop("exercise"): line for line in lines[1:]}
    lost = "The process that checks ended before this one's turn was over."
    for name in sources:
        outcomes.setdefault(name, {"state": "stopped", "message": lost, "right": 0})
    return outcomes, tuple(lines[0]["lacking"])


def _run(request: str, scratch: Path, seconds: float) -> tuple[list[dict], str]:
    """Start an examiner; the lines that it wrote, and the last of what it complained of."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    home = {"HOME": str(scratch), "TMPDIR": str(scratch), "MPLBACKEND": "agg"}
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", START],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=scratch,
        env={"PATH": os.defpath, "LANG": "C.UTF-8"} | home | one,
        start_new_session=True,
    )
    try:
        written, said = process.communicate(request, timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        written, said = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    last = said.strip().splitlines()[-1:]
    return [json.loads(line) for line in written.splitlines() if line.endswith("}")], "".join(last)


def _can_hide(folders: tuple[Path, ...]) -> list[Path]:
    """Those that are there and hold nothing that checking needs."""
    needs = [path.resolve() for path in (ROOT / "course", Path(sys.prefix), Path(sys.base_prefix))]
    real = {folder.resolve() for folder in folders if folder.is_dir()}
    return sorted(each for each in real if not any(need.is_relative_to(each) for need in needs))
