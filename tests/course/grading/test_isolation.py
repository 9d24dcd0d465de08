"""An answer is shut in as far as this system lets an ordinary user, and the grader says how far."""

import sys

import pytest

from course.grading import isolation
from course.grading.answers import Answer
from course.grading.chapters import ROOT, chapter
from course.grading.processes import examined

ASKS = {
    "add_positions": "import socket; said = socket.if_nameindex()",
    "move_by": f"import os; said = os.listdir({str(ROOT / 'book')!r}), os.listdir({str(ROOT / 'tests')!r})",
    "resample_linear": "import os; said = [n for n in os.listdir('/proc') if n.isdecimal()], os.getppid()",
    "relative_bias": "import os; os.remove('FILE'); said = 'gone'",
    "rotary_2d": "import os; said = sorted(os.environ), open('own', 'w').write('x')",
}


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "file"
    path.touch()
    return path


@pytest.fixture(scope="module")
def said(file):
    """What each of five functions found when it was called, and what the system lacks."""
    sources = {
        name: f"def {name}(*inputs):\n    {line}\n    raise ValueError(str(said)[:150])\n"
        for name, line in ASKS.items()
    }
    sources["relative_bias"] = sources["relative_bias"].replace("FILE", str(file))
    outcomes, lacking = examined([Answer(*each) for each in sources.items()], 20, 500)
    assert set(outcomes) == set(chapter(3).exercises)
    return {name: outcome["message"] for name, outcome in outcomes.items()}, lacking


def test_the_environment_is_the_examiners_own(said):
    assert "HOME" in said[0]["rotary_2d"] and "PYTEST_CURRENT_TEST" not in said[0]["rotary_2d"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("add_positions", "[(1, 'lo')]"),
        ("move_by", "([], [])"),
        ("resample_linear", ", 1)"),
        ("relative_bias", "Read-only file system"),
        ("rotary_2d", ", 1)"),
    ],
)
def test_where_namespaces_are_allowed_there_is_no_network_and_nothing_to_read_or_delete(
    said, name, expected, file
):
    messages, lacking = said
    if lacking:
        pytest.skip(f"here: {lacking}")
    assert expected in messages[name]
    assert file.exists()


def test_a_system_without_namespaces_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert isolation.enter(tmp_path, []) == ["no namespaces on darwin"]
