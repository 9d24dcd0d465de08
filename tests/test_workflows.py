"""Workflows and issue forms: what two linters say of them."""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from book.tools.address import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
FORMS = sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml"))


def test_the_linters_find_nothing():
    """What can be misused, such as actions that may change, and what the forms of GitHub are."""
    programs = [[Path(sysconfig.get_path("scripts"), "zizmor"), "--offline", "--quiet", *WORKFLOWS]]
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    programs.append([*check, "vendor.github-workflows", *WORKFLOWS])
    programs.append([*check, "vendor.github-issue-forms", *FORMS])
    programs.append([*check, "vendor.dependabot", GITHUB / "dependabot.yml"])
    for program in programs:
        done = subprocess.run(program, capture_output=True, text=True, encoding="utf-8")
        assert done.returncode == 0, done.stdout + done.stderr


def test_an_action_is_the_same_wherever_it_is_used_and_says_its_version():
    uses = [line.strip().removeprefix("- ") for path in WORKFLOWS
            for line in path.read_text(encoding="utf-8").splitlines() if "uses:" in line]  # fmt: skip
    assert uses
    for line in uses:
        assert re.fullmatch(r"uses: [\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line), line
    assert len({line.split("@")[0] for line in uses}) == len(set(uses))


def test_the_workflows_lint_run_every_kind_of_test_and_need_no_make():
    text = "".join(path.read_text(encoding="utf-8") for path in WORKFLOWS)
    for step in ("ruff check .", "ruff format --check .", "mypy\n", "pytest --nbval",
                 "--ignore tests/browser -v --random-order\n", "pytest tests/site tests/browser\n", "python -m tests.hostile"):  # fmt: skip
        assert step in text, step
    for path in WORKFLOWS:
        assert not re.search(r"run: make\b", path.read_text(encoding="utf-8")), path.name
    steps = (GITHUB / "workflows/pages.yml").read_text(encoding="utf-8")
    figures = steps.find("python -m book.tools.figures")
    assert 0 < figures < steps.find("jupyter-book build"), "drawn before the site is built"
