"""``make test-machines``: what it plays, what it stores, and that an interrupted run goes on."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from book.tools import machines as tool
from book.tools.address import ROOT
from book.tools.first_cell import notebooks
from course.claims.ledger import harvest, machines
from vitlab.claims.rules import UNCERTAIN, YES, word_of

REPORT = """<testsuites><testsuite>
<testcase name="Cell 1" time="2"><properties><property name="figure" value='{}'/></properties></testcase>
<testcase name="Cell 2" time="1"><failure message="other digits"/></testcase>
</testsuite></testsuites>"""

# Verdicts whose interval reaches a threshold. Another one here asks for more seeds or another figure.
ON_THE_EDGE = {"C18", "H05", "H13", "H19", "H20", "H23", "H27", "H30", "H32", "H34", "H35", "H37"}
ON_THE_EDGE |= {"H14", "H25", "H36", "H38", "H39", "L17", "R32", "R62", "R70"}


def test_the_runs_cover_every_cap_and_one_two_and_four_threads_in_at_most_six():
    assert len(tool.RUNS) <= 6
    assert {run.threads for run in tool.RUNS.values()} == {1, 2, 4}
    used = {cap: {run.caps.get(cap) for run in tool.RUNS.values()} for cap in tool.RUNS["sse"].caps}
    assert used["ATEN_CPU_CAPABILITY"] == {None, "avx2", "default"}
    assert used["ONEDNN_MAX_CPU_ISA"] == {None, "AVX512_CORE", "AVX2", "SSE41"}
    assert all(len(values) > 1 for values in used.values())


def test_every_notebook_and_every_unit_test_is_part_of_a_run():
    played = {arguments[-1] for arguments in tool.parts().values()}
    assert {str(path.relative_to(ROOT)) for path in notebooks()} <= played
    tests = {p.relative_to(ROOT).parts[:2] for p in (ROOT / "tests").rglob("test_*.py")}
    elsewhere = {f"tests/{name}" for name in tool.ELSEWHERE}
    assert {"/".join(part) for part in tests} - elsewhere <= played


@pytest.mark.full
def test_a_cap_reaches_the_library_that_it_caps():
    says = "import torch, numpy; from numpy._core import _multiarray_umath as n; print(torch.backends.cpu.get_cpu_capability(), n.__cpu_features__['X86_V3'])"  # fmt: skip
    environment = os.environ | tool.RUNS["sse"].caps
    done = subprocess.run([sys.executable, "-c", says], env=environment, capture_output=True)
    assert done.stdout.decode().split() == ["DEFAULT", "False"]


@pytest.fixture
def pytest_that(monkeypatch):
    """Stands in for pytest: it ends with the codes given, and writes a report."""

    def use(*codes):
        left, calls = list(codes), []

        def run(command, **settings):
            calls.append(settings["env"])
            path = command[command.index("--junitxml") + 1]
            about = json.dumps({"id": "R01", "seeds": [1.0, 2.0, 6.0]})
            with open(path, "w", encoding="utf-8") as file:
                file.write(REPORT.format(about))
            return SimpleNamespace(returncode=left.pop(0), stdout="2 passed")

        monkeypatch.setattr(tool.subprocess, "run", run)
        monkeypatch.setattr(tool, "parts", lambda: {"book/01": ["x"], "tests/course": ["y"]})
        return calls

    return use


def test_a_run_counts_tests_cells_and_failures_and_how_far_a_figure_is_from_its_page(
    tmp_path, pytest_that, monkeypatch
):
    monkeypatch.setattr(tool, "on_pages", lambda: {"R01": 2.5})
    calls = pytest_that(1, 0)
    tool.play("sse", tool.RUNS["sse"], tmp_path)
    assert [env["ATEN_CPU_CAPABILITY"] for env in calls] == ["default", "default"]
    row = tool.read("sse", tmp_path)
    assert (row["tests"], row["cells"], row["moved"]) == (2, 2, {"R01": 0.5})
    assert row["failed"] == ["book-01: Cell 2", "tests-course: Cell 2"]


def test_an_interrupted_run_goes_on_with_the_part_that_was_not_finished(tmp_path, pytest_that):
    pytest_that(0, 2)
    run = tool.Run(99, {})  # threads, so that parts run one after the other
    with pytest.raises(RuntimeError, match="sse, tests/course: pytest ended with 2"):
        tool.play("sse", run, tmp_path)
    assert tool.read("sse", tmp_path)["cells"] == 2
    calls = pytest_that(0)
    tool.play("sse", run, tmp_path)
    assert len(calls) == 1


def test_contributing_shows_the_runs_that_are_stored_and_none_is_red():
    assert {row["run"] for row in machines()["runs"]} >= {"as-it-is", "avx2", "sse"}
    assert tool.table() in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {row["run"]: row["failed"] for row in machines()["runs"] if row["failed"]} == {}


def test_verdicts_on_the_edge_of_a_rule_say_so():
    found = harvest().items()
    edge = {name: f.verdict for name, f in found if "no farther than" in f.margin}
    assert set(edge) == ON_THE_EDGE
    for name, verdict in edge.items():  # the weakest word on the interval, or none
        assert word_of(verdict) in (UNCERTAIN, *YES[1:]), name
