"""Which rules of ``book/claims.yml`` changed after a chapter had stored their verdict, by git."""

import re
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

from book.tools.address import ROOT
from course.claims.verdict import MIME

ROWS = "book/claims.yml"
STORED = re.compile(rb'"%b": \{[^{}]*?"id": "(\w+)"' % re.escape(MIME).encode())
BESIDE = "uncertain", "one part"  # fields of a rule that are no case
CASE = re.compile(r"(.+) if (<=?|>=?) (\S+)")
LAST = re.compile(r"(?:otherwise|always) (.+)")
KINDS = ("holds", "qualified", "history", "cannot")  # every other word is a kind of no

Rules = dict[str, str]  # by claim, each in the form of ``str(Rule)``
Change = tuple[str, str]  # a claim, and its rule's form until a change after its first verdict


class Commit(NamedTuple):
    name: str
    parents: list[str]
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
        yield from _changed(before, after, already)
        rules[commit.name] = after
        answered[commit.name] = already.union(*(stored[blob] for blob in files.values()))
    if history:
        now = _forms((root / ROWS).read_bytes())
        yield from _changed([after], now, answered[commit.name])


def same(a: str, b: str) -> bool:
    """Whether two forms of a rule give the same kind of word in the same cases."""
    return bool(_cases(a)) and _cases(a) == _cases(b)


def whole(root: Path = ROOT) -> bool:
    """Whether there is a git history here, and not only its end."""
    try:
        return _git(root, "rev-parse", "--is-shallow-repository") == "false\n"
    except (OSError, subprocess.CalledProcessError):
        return False


def _changed(before: list[Rules], after: Rules, claims: set[str]) -> Iterator[Change]:
    for claim in sorted(claims):
        was = [rules.get(claim, "") for rules in before]
        if all(form and not same(form, after.get(claim, "")) for form in was):
            yield claim, was[0]


def _forms(text: bytes) -> Rules:
    """The rules of a ``claims.yml`` of any age, whatever the words were then."""
    forms = {}
    for row in yaml.load(text, yaml.CSafeLoader)["claims"]:
        rule = {case: said for case, said in row.get("rule", {}).items() if case not in BESIDE}
        words = [(case, verdict.partition(":")[0]) for case, verdict in rule.items()]
        *cases, last = words or [("", "")]
        parts = [*(f"{word} if {case}" for case, word in cases), " ".join(last)]
        forms[row["id"]] = "; ".join(parts).strip()
    return forms


def _cases(form: str) -> list[tuple[str, float, str]]:
    """Sign, threshold and kind of word of a rule's cases, the last for what is left.

    A case before the last that gets the same kind of word is none.
    """
    *cases, last = (case for case in form.split("; ") if "if one part" not in case)
    matches, left = [CASE.fullmatch(case) for case in cases], LAST.fullmatch(last)
    if not left or not all(matches):
        return []
    kinds = [(m[2], float(m[3]), _kind(m[1])) for m in matches if m]
    while kinds and kinds[-1][2] == _kind(left[1]):
        kinds.pop()
    return [*kinds, ("", 0.0, _kind(left[1]))]


def _kind(word: str) -> str:
    return next((kind for kind in KINDS if word.startswith(kind)), "no")


def _commits(root: Path) -> Iterator[Commit]:
    """HEAD and what is before it, parents first, as if no other commits were between."""
    order = "log --topo-order --reverse --full-history --parents -m --raw --no-abbrev --no-renames"
    log = _git(root, *order.split(), "--format=%x00%H|%P", "--", ROWS, ":(glob)book/*.ipynb")
    commits: dict[str, Commit] = {}  # a merge is listed once for each parent
    for entry in log.split("\0")[1:]:
        head, *lines = entry.split("\n")
        name, _, parents = head.partition("|")
        commit = commits.setdefault(name, Commit(name, parents.split(), {}))
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
