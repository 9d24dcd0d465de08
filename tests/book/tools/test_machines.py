"""``make test-machines``: what it plays, what it stores, and that an interrupted run goes on."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from book.tools import machines as tool
from book.tools.address import ROOT
from course.claims.ledger import harvest, machines
from vitlab.claims.rules import DEPENDS, UNCERTAIN, YES, word_of

REPORT = """<testsuites><testsuite>
<testcase name="Cell 1" time="2"><properties><property name="figure" value='{}'/></properties></testcase>
<testcase classname="book.01" name="Cell 2" time="1"><failure message="other digits"/></testcase>
</testsuite></testsuites>"""

# Verdicts whose interval reaches a threshold. Another one here asks for more seeds or another figure.
ON_THE_EDGE = {"C18", "H03", "H05", "H14", "H17", "H19", "H25", "H30", "H32", "H34", "H36", "H37"}
ON_THE_EDGE |= {"H38", "H39", "L17", "R31", "R32", "R62", "R70"}
ON_THE_EDGE |= {"B06", "B07", "N06", "N09", "W03", "W06"}


def test_the_runs_cover_every_cap_and_thread_count():
    assert {run.threads for run in tool.RUNS.values()} == {1, 2, 4}
    used = {cap: {run.caps.get(cap) for run in tool.RUNS.values()} for cap in tool.RUNS["sse"].caps}
    assert used["ATEN_CPU_CAPABILITY"] == {None, "avx2", "default"}
    assert used["ONEDNN_MAX_CPU_ISA"] == {None, "AVX512_CORE", "AVX2", "SSE41"}
    assert all(len(values) > 1 for values in used.values())


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
