"""Runs the unit tests and every notebook as other processors would.

    python -m book.tools.machines            runs what is missing for this commit, and stores it
    python -m book.tools.machines --table    prints the table that stands in CONTRIBUTING.md

torch, oneDNN, MKL, OpenBLAS and NumPy choose their code by the processor, and sums in another order
have other last digits. Environment variables make them choose as on a lesser one. A run is cut into
parts; a part that is finished is not run again, so an interrupted call goes on where it was.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any
from xml.etree import ElementTree

import nbformat
import pytest

from book.tools.address import ROOT
from book.tools.first_cell import notebooks
from course.claims.ledger import MIME
from course.claims.machines import MACHINES, machines

ELSEWHERE = ("site", "browser", "tools", "__pycache__")  # what they test is not computed
SCRATCH = ROOT / "_build" / "machines"
NBVAL = ["--nbval", "--nbval-cell-timeout", "600", "--nbval-kernel-name", "python3"]


@dataclass(frozen=True)
class Run:
    """A processor to act as: what caps the libraries, and the number of threads."""

    threads: int
    caps: dict[str, str]


# Every value of each cap, and 1, 2 and 4 threads, in as few runs as it takes.
RUNS = {
    "as-it-is": Run(1, {}),
    "no-amx": Run(4, {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "MKL_CBWR": "AVX512"}),
    "avx2": Run(
        2,
        {
            "ATEN_CPU_CAPABILITY": "avx2",
            "ONEDNN_MAX_CPU_ISA": "AVX2",
            "MKL_CBWR": "AVX2",
            "OPENBLAS_CORETYPE": "Haswell",
        },
    ),
    "sse": Run(
        1,
        {
            "ATEN_CPU_CAPABILITY": "default",
            "ONEDNN_MAX_CPU_ISA": "SSE41",
            "MKL_CBWR": "COMPATIBLE",
            "OPENBLAS_CORETYPE": "Nehalem",
            "NPY_DISABLE_CPU_FEATURES": "X86_V3",
        },
    ),
}


def parts() -> dict[str, list[str]]:
    """What pytest is called with, by the name of the part: a notebook, or a folder of tests."""
    found = {f"{p.parent.name}/{p.stem}": [*NBVAL, str(p.relative_to(ROOT))] for p in notebooks()}
    for path in sorted((ROOT / "tests").iterdir()):
        if path.is_dir() and path.name not in ELSEWHERE or path.match("test_*.py"):
            found[f"tests/{path.stem}"] = ["-m", "not full", str(path.relative_to(ROOT))]
    return found


def play(name: str, run: Run, folder: Path) -> None:
    """Runs the parts of a run that have not been run yet; as many at a time as cores allow."""
    threads = {"OMP_NUM_THREADS": str(run.threads), "OMP_WAIT_POLICY": "PASSIVE"}  # no spinning
    environment = os.environ | threads | run.caps

    def one(part: str, arguments: list[str]) -> None:
        report = folder / name / f"{part.replace('/', '-')}.xml"
        if report.exists():
            return
        unfinished = report.with_suffix(".part")
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "book.tools.machines",
            "-p",
            "no:cacheprovider",
        ]
        done = subprocess.run(
            [*command, "--junitxml", str(unfinished), *arguments],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        if done.returncode not in (0, 1):  # pytest itself failed, or was interrupted
            raise RuntimeError(
                f"{name}, {part}: pytest ended with {done.returncode}\n{done.stdout}"
            )
        unfinished.replace(report)
        print(f"{name}: {part}: {done.stdout.splitlines()[-1]}", flush=True)

    (folder / name).mkdir(parents=True, exist_ok=True)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with ThreadPoolExecutor(max(1, (cores or 1) // run.threads)) as pool:
        for job in [pool.submit(one, *part) for part in parts().items()]:
            job.result()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Passes on every digit of a verdict's figure, and what a cell printed that differs."""
    outcome = yield
    for output in getattr(item, "test_outputs", None) or []:
        if about := output.get("metadata", {}).get(MIME):
            item.user_properties.append(("figure", json.dumps(about)))
        if outcome.excinfo:
            item.user_properties.append(("printed", output.get("text", "")))


def read(name: str, folder: Path) -> dict[str, Any]:
    """A finished run: its row of the table, and how far the figures of verdicts moved."""
    seen: dict[str, Any] = {"tests": 0, "cells": 0, "failed": [], "moved": {}}
    stored = on_pages()
    for report in sorted((folder / name).glob("*.xml")):
        for case in ElementTree.parse(report).iter("testcase"):
            seen["tests" if report.stem.startswith("tests-") else "cells"] += 1
            if case.find("failure") is not None or case.find("error") is not None:
                seen["failed"].append(f"{report.stem}: {case.get('name')}")
            for found in case.iterfind(".//property[@name='figure']"):
                about = json.loads(found.get("value", ""))
                if about["seeds"] and about["id"] in stored:
                    seen["moved"][about["id"]] = mean(about["seeds"]) - stored[about["id"]]
    return {
        "run": name,
        "threads": RUNS[name].threads,
        "processor": processor(),
        "python": platform.python_version(),
        "commit": folder.name,
        "date": date.today().isoformat(),
        **seen,
    }


def on_pages() -> dict[str, float]:
    """The figures of all verdicts as the notebooks have them stored, means over the seeds."""
    found = {}
    for path in notebooks():
        for cell in nbformat.read(path, as_version=4).cells:
            for output in cell.get("outputs", []):
                if (about := output.get("metadata", {}).get(MIME)) and about["seeds"]:
                    found[about["id"]] = mean(about["seeds"])
    return found


def processor() -> str:
    """What this machine calls its processor, and the widest vectors that it has."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    says = dict(re.findall(r"^(.*?)\s*: (.*)$", text, re.M))
    widest = (f for f in ("amx_tile", "avx512f", "avx2") if f in says.get("flags", "").split())
    return f"{says.get('model name', platform.machine())}, {next(widest, 'SSE')}"


def table() -> str:
    """The stored runs, in Markdown."""
    lines = [
        "| run | threads | processor | Python | commit | tests | cells | red |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in machines()["runs"]:
        names = ("run", "threads", "processor", "python", "commit", "tests", "cells")
        lines.append(f"| {' | '.join(str(row[n]) for n in names)} | {len(row['failed'])} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", choices=RUNS, action="append", help="default: all, in turn")
    parser.add_argument("--table", action="store_true", help="print the table of stored runs")
    options = parser.parse_args()
    if options.table:
        print(table())
        return
    git = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    folder = SCRATCH / subprocess.check_output(git, cwd=ROOT, text=True).strip()
    names = options.run or list(RUNS)
    for name in names:
        play(name, RUNS[name], folder)
    # At the end: verdicts read what is stored, and a changed file makes another folder.
    rows = [read(name, folder) for name in names]
    for row in rows:
        print(f"{row['run']}: {row['tests']} tests, {row['cells']} cells, red: {row['failed']}")
    played = [(row["run"], row["processor"]) for row in rows]
    others = [old for old in machines()["runs"] if (old["run"], old["processor"]) not in played]
    text = json.dumps({"runs": [*others, *rows]}, indent=1)
    MACHINES.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
