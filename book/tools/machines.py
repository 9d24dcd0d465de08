"""Runs the unit tests and every notebook as other processors would, with other last digits in sums.

    python -m book.tools.machines [--run NAME]        default: all runs, in turn

Stores what they found, and prints the table that stands in CONTRIBUTING.md.

Environment variables make torch, oneDNN, MKL, OpenBLAS and NumPy choose their code as on a lesser
one. Parts of a run that are finished for this commit are not run again.
"""

import argparse
import json
import os
import platform
import re
import subprocess
import sys
from datetime import date
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pytest

from book.tools.address import ROOT, git
from course.claims.ledger import MACHINES, MIME, harvest, machines

SCRATCH = ROOT / "_build" / "machines"
PYTEST = [sys.executable, "-m", "pytest", "-pno:cacheprovider", "-pbook.tools.machines"]
NBVAL = "--nbval --nbval-cell-timeout 600 --nbval-kernel-name python3 --dist loadscope book"
TESTS = "--dist worksteal tests --ignore tests/site --ignore tests/browser"  # what computes
PARTS = {"tests": [*TESTS.split(), "-m", "not full"], "book": NBVAL.split()}
COLUMNS = ("run", "threads", "processor", "python", "commit", "tests", "cells")


class Run(NamedTuple):
    """A processor to act as: the number of threads, and what caps the libraries."""

    threads: int
    caps: dict[str, str]


CAPS = "ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_CBWR", "OPENBLAS_CORETYPE"
OLDEST = dict(zip(CAPS, ("default", "SSE41", "COMPATIBLE", "Nehalem"), strict=True))
# Every value of each cap, and 1, 2 and 4 threads, in as few runs as it takes.
RUNS = {
    "as-it-is": Run(1, {}),
    "no-amx": Run(4, {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE", "MKL_CBWR": "AVX512"}),
    "avx2": Run(2, dict(zip(CAPS, ("avx2", "AVX2", "AVX2", "Haswell"), strict=True))),
    "sse": Run(1, OLDEST | {"NPY_DISABLE_CPU_FEATURES": "X86_V3"}),
}


def play(name: str, run: Run, folder: Path) -> None:
    """Runs the parts of a run that have not been run yet, on as many processes as cores allow."""
    threads = {"OMP_NUM_THREADS": str(run.threads), "OMP_WAIT_POLICY": "PASSIVE"}  # no spinning
    processes = max(1, (os.cpu_count() or 1) // run.threads)
    (folder / name).mkdir(parents=True, exist_ok=True)
    for part, arguments in PARTS.items():
        report = folder / name / f"{part}.xml"
        if report.exists():
            continue
        unfinished = report.with_suffix(".part")
        command = [*PYTEST, "-n", str(processes), "--junitxml", str(unfinished), *arguments]
        ended = subprocess.run(command, cwd=ROOT, env=os.environ | threads | run.caps).returncode
        if ended not in (0, 1):  # pytest itself failed, or was interrupted
            raise RuntimeError(f"{name}, {part}: pytest ended with {ended}")
        unfinished.replace(report)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item: pytest.Item):
    """Passes on every digit of a verdict's figure."""
    yield
    for output in getattr(item, "test_outputs", None) or []:
        if figure := output.get("metadata", {}).get(MIME):
            item.user_properties.append(("figure", json.dumps(figure)))


def read(name: str, folder: Path) -> dict[str, Any]:
    """A finished run: its row of the table, and how far the figures of verdicts moved."""
    counts, failed, drift, stored = {"tests": 0, "cells": 0}, [], {}, on_pages()
    for report in sorted((folder / name).glob("*.xml")):
        for case in ElementTree.parse(report).iter("testcase"):
            counts["tests" if report.stem == "tests" else "cells"] += 1
            if case.find("failure") is not None or case.find("error") is not None:
                failed.append(f"{case.get('classname')}: {case.get('name')}")
            for figure in case.iterfind(".//property[@name='figure']"):
                about = json.loads(figure.get("value", ""))
                if about["seeds"] and about["id"] in stored:
                    drift[about["id"]] = mean(about["seeds"]) - stored[about["id"]]
    return {
        "run": name,
        "threads": RUNS[name].threads,
        "processor": processor(),
        "python": platform.python_version(),
        "commit": folder.name,
        "date": date.today().isoformat(),
        **counts,
        "failed": failed,
        "moved": drift,
    }


def on_pages() -> dict[str, float]:
    """The figures of all verdicts as the notebooks have them stored, means over the seeds."""
    return {name: mean(found.seeds) for name, found in harvest().items() if found.seeds}


def processor() -> str:
    """What this machine calls its processor, and the widest vectors that it has."""
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.processor() or platform.machine()
    lines = dict(re.findall(r"^(.*?)\s*: (.*)$", info.read_text(encoding="utf-8"), re.M))
    flags = lines.get("flags", "").split()
    widest = next((flag for flag in ("amx_tile", "avx512f", "avx2") if flag in flags), "SSE")
    return f"{lines.get('model name', platform.machine())}, {widest}"


def table(runs: list[dict[str, Any]]) -> str:
    lines = ["| run | threads | processor | Python | commit | tests | cells | red |"]
    lines += ["|---" * 8 + "|"]
    for row in runs:
        lines.append(f"| {' | '.join(str(row[n]) for n in COLUMNS)} | {len(row['failed'])} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--run", choices=RUNS, action="append")
    names = parser.parse_args().run or list(RUNS)
    folder = SCRATCH / git("describe", "--always", "--dirty=+", "--exclude=*").decode().strip()
    for name in names:
        play(name, RUNS[name], folder)
    # At the end: verdicts read what is stored, and a changed file makes another folder.
    rows = [read(name, folder) for name in names]
    new = [(row["run"], row["processor"]) for row in rows]
    others = [old for old in machines()["runs"] if (old["run"], old["processor"]) not in new]
    MACHINES.write_text(json.dumps({"runs": [*others, *rows]}, indent=1) + "\n", encoding="utf-8")
    print("\n".join([table([*others, *rows]), *(test for row in rows for test in row["failed"])]))
