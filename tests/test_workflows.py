"""Workflows and issue forms: what two linters say of them, and that they would see a fault."""

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

from book.tools.address import ROOT

GITHUB = ROOT / ".github"
WORKFLOWS = sorted(GITHUB.glob("workflows/*.yml"))
FORMS = sorted(GITHUB.glob("ISSUE_TEMPLATE/*.yml"))
TESTS = (GITHUB / "workflows/tests.yml").read_text(encoding="utf-8")
FORM = FORMS[0].read_text(encoding="utf-8")


def ran(command):
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8")
    return result.returncode, result.stdout + result.stderr


def zizmor(files):
    """What can be misused: actions that may change, broad permissions, text that becomes code."""
    return ran([Path(sysconfig.get_path("scripts"), "zizmor"), "--offline", "--quiet", *files])


def schema(name, files):
    return ran(
        [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{name}", *files]
    )


def test_the_linters_find_nothing():
    for code, said in (
        zizmor(WORKFLOWS),
        schema("github-workflows", WORKFLOWS),
        schema("github-issue-forms", FORMS),
        schema("dependabot", [GITHUB / "dependabot.yml"]),
    ):
        assert code == 0, said


WEAKNESSES = [
    ("unpinned-uses", r"@[0-9a-f]{40} # v6.0.2", "@v6"),
    ("artipacked", r"persist-credentials: false", "fetch-depth: 1"),
    ("excessive-permissions", r"permissions:\n +contents: read", "permissions: write-all"),
    ("template-injection", r"run: python -m pytest --nbval", "run: echo ${{ github.head_ref }}"),
]


def test_a_planted_weakness_or_slip_is_found(tmp_path):
    planted, text = tmp_path / "tests.yml", TESTS
    for _, old, new in WEAKNESSES:
        text = re.sub(old, new, text)
    planted.write_text(text, encoding="utf-8")
    code, said = zizmor([planted])
    assert code != 0 and all(f"[{name}]" in said for name, *_ in WEAKNESSES), said
    for name, text, old, new in [
        ("github-workflows", TESTS, "runs-on", "runs-at"),
        ("github-workflows", TESTS, "contents: read", "contents: some"),
        ("github-issue-forms", FORM, "label: Claim", "title: Claim"),
        ("github-issue-forms", FORM, "type: input", "type: field"),
    ]:
        planted.write_text(text.replace(old, new), encoding="utf-8")
        code, said = schema(name, [planted])
        assert code != 0 and planted.name in said, said


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
                 "--ignore tests/browser -v --random-order\n", "pytest tests/site tests/browser\n"):  # fmt: skip
        assert step in text, step
    for path in WORKFLOWS:
        assert not re.search(r"run: make\b", path.read_text(encoding="utf-8")), path.name
    steps = (GITHUB / "workflows/pages.yml").read_text(encoding="utf-8")
    figures = steps.find("python -m book.tools.figures")
    assert 0 < figures < steps.find("jupyter-book build"), "drawn before the site is built"
