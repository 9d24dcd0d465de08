"""Which rules of ``book/claims.yml`` changed after a chapter had stored their verdict, by git.

python -m book.tools.rule_history        lists them, each with the form that it had before
"""

import math
import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import yaml

from book.tools.address import ROOT
from course.claims.verdict import MIME
from vitlab.claims.rules import COMPARE

ROWS = "book/claims.yml"
STORED = re.compile(rb'"%b": \{[^{}]*?"id": "(\w+)"' % re.escape(MIME).encode())
CASE = re.compile(r"(.+) if (<=?|>=?) (\S+)")
LAST = re.compile(r"(?:otherwise|always) (.+)")
KINDS = ("holds", "qualified", "history", "cannot")  # every other word is a kind of no

Rules = dict[str, str]  # by claim, each in the form of ``str(Rule)``


class Change(NamedTuple):
    """A rule as it was until a change that came after its first stored verdict."""

    claim: str
    when: str  # a day in UTC, or "not committed"
    was: str  # in the form of ``str(Rule)``


class Commit(NamedTuple):
    name: str
    parents: list[str]
    day: str
    files: dict[str, str]  # the changed ones: blobs by path


def changes(root: Path = ROOT) -> Iterator[Change]:
    """The changes in HEAD's history, from all parents of a commit, and those not committed."""
    history = list(_commits(root))
    paths = {blob: path for commit in history for path, blob in commit.files.items()}
    forms, stored = {}, {}  # by blob
    for blob, text in _read(root, paths):
        if paths[blob] == ROWS:
            forms[blob] = _forms(text)
        else:
            stored[blob] = {name.decode() for name in STORED.findall(text)}

    rules, answered = {}, {}  # by commit: the rules, and the claims with a verdict there or earlier
    for commit in history:
        before = [rules[parent] for parent in commit.parents] or [{}]
        already = set().union(*(answered[parent] for parent in commit.parents))
        files = commit.files.copy()
        after = forms[files.pop(ROWS)] if ROWS in files else before[0]
        yield from _changed(before, after, already, commit.day)
        rules[commit.name] = after
        answered[commit.name] = already.union(*(stored[blob] for blob in files.values()))
    if history:
        now = _forms((root / ROWS).read_bytes())
        yield from _changed([after], now, answered[commit.name], "not committed")


def same(a: str, b: str) -> bool:
    """Whether two forms of a rule give the same kind of word for every figure."""
    ours, theirs = _cases(a), _cases(b)
    thresholds = {threshold for _, threshold, _ in ours + theirs}
    points = {math.nextafter(x, to) for x in thresholds for to in (-math.inf, x, math.inf)}
    return bool(ours and theirs) and all(_kind(ours, x) == _kind(theirs, x) for x in points)


def why_not(root: Path = ROOT) -> str:
    """Why the history cannot be replayed here; empty if it can."""
    try:
        answer = _git(root, "rev-parse", "--show-toplevel", "--is-shallow-repository")
    except (OSError, subprocess.CalledProcessError):
        return "there is no git history"
    top, shallow = answer.splitlines()
    if not Path(top).samefile(root):
        return "the git history is that of another folder"
    return "a shallow clone has no history" if shallow == "true" else ""


def _changed(before: list[Rules], after: Rules, claims: set[str], day: str) -> Iterator[Change]:
    for claim in sorted(claims):
        was = [rules.get(claim, "") for rules in before]
        if all(form and not same(form, after.get(claim, "")) for form in was):
            yield Change(claim, day, was[0])


def _forms(text: bytes) -> Rules:
    """The rules of a ``claims.yml`` of any age, whatever the words were then."""
    forms = {}
    for row in yaml.load(text, yaml.CSafeLoader)["claims"]:
        rule = {case: said for case, said in row.get("rule", {}).items() if case != "uncertain"}
        words = [(case, verdict.partition(":")[0]) for case, verdict in rule.items()]
        *cases, last = words or [("", "")]
        parts = [*(f"{word} if {case}" for case, word in cases), " ".join(last)]
        forms[row["id"]] = "; ".join(parts).strip()
    return forms


def _cases(form: str) -> list[tuple[str, float, str]]:
    """Sign, threshold and word of a rule's cases, the last for what is left; none of no rule."""
    *cases, last = form.split("; ")
    matches, left = [CASE.fullmatch(case) for case in cases], LAST.fullmatch(last)
    if not left or not all(matches):
        return []
    return [*((m[2], float(m[3]), m[1]) for m in matches if m), ("<=", math.inf, left[1])]


def _kind(cases: list[tuple[str, float, str]], x: float) -> str:
    word = next(word for sign, threshold, word in cases if COMPARE[sign](x, threshold))
    return next((kind for kind in KINDS if word.startswith(kind)), "no")


def _commits(root: Path) -> Iterator[Commit]:
    """HEAD and what is before it, parents first, as if no other commits were between."""
    order = "log --topo-order --reverse --full-history --parents -m --raw --no-abbrev --no-renames"
    paths = "--", ROWS, ":(glob)book/*.ipynb"
    log = _git(root, *order.split(), "--format=%x00%H|%P|%ct", *paths)
    commits: dict[str, Commit] = {}  # a merge is listed once for each parent
    for entry in log.split("\0")[1:]:
        head, *lines = entry.split("\n")
        name, parents, seconds = head.split("|")
        day = datetime.fromtimestamp(int(seconds), UTC).date().isoformat()
        commit = commits.setdefault(name, Commit(name, parents.split(), day, {}))
        for line in filter(None, lines):
            _, _, _, blob, status, path = line.split(maxsplit=5)
            if status != "D":
                commit.files[path] = blob
    yield from commits.values()


def _read(root: Path, blobs: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """The contents of blobs, from one process, one at a time: together they are large."""
    with tempfile.TemporaryFile() as names:
        names.write("\n".join(blobs).encode())
        names.seek(0)
        command = ["git", "cat-file", "--batch"]
        with subprocess.Popen(command, cwd=root, stdin=names, stdout=subprocess.PIPE) as git:
            while head := git.stdout.readline():
                blob, _, size = head.decode().split()
                yield blob, git.stdout.read(int(size) + 1)


def _git(root: Path, *arguments: str) -> str:
    options = {"cwd": root, "stderr": subprocess.DEVNULL, "encoding": "utf-8"}
    return subprocess.check_output(["git", *arguments], **options)


if __name__ == "__main__":
    for change in changes():
        print(f"{change.claim}  {change.when}  {change.was}")
