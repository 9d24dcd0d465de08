"""A rule that changes after its first stored verdict says so, in ``amended``.

Every form that a rule has had, on merged branches too, is the one it has or one that is told. What
changed before the first verdict is told likewise, or listed in ``EARLIER``.
"""

import re
import shutil
import subprocess

import pytest
import yaml

from book.tools.address import ROOT

ROWS = "book/claims.yml"
PART = re.compile(r"(.+) if (<=?|>=?) (\S+)|(?:otherwise|always) (.+)")
KINDS = ("holds", "qualified", "history", "cannot")  # every other word is a kind of no
EARLIER = {
    "H26": "holds if >= 0.05; weaker than claimed if > -0.05; otherwise the opposite was seen here",
    "L17": "L17 if >= 0.1; weaker than claimed if >= 0; otherwise the opposite was seen here",
    "R18": "holds if <= 0.95; weaker than claimed if <= 1.05; otherwise the opposite was seen here",
    "R31": "WIDE if >= 0.25; weaker than claimed if >= 0; otherwise the opposite was seen here",
    "R67": "holds if < 0; qualified if <= 0; otherwise not seen at this scale",
}
AUTHOR = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
pytestmark = pytest.mark.skipif(not shutil.which("git"), reason="there is no git")


def git(root, *arguments):
    return subprocess.check_output(["git", "-C", root, *AUTHOR, *arguments], encoding="utf-8")


def silent(root):
    """Claims, each with a form that its rule has had and that nothing tells of."""
    now = split((root / ROWS).read_text(encoding="utf-8"))
    told = [(row["id"], entry["was"]) for row in claims(now) for entry in row.get("amended", [])]
    known = {(name, cases(form)) for name, form in [*told, *forms(now)]}
    objects = git(root, "rev-list", "--objects", "--full-history", "HEAD", "--", ROWS)
    versions = re.findall(rf"(?m)^(\w+) {ROWS}$", objects)
    had = set().union(*(split(git(root, "cat-file", "blob", version)) for version in versions))
    return sorted({rule for rule in forms(had) if (rule[0], cases(rule[1])) not in known})


def split(text):
    """The claims of a ``claims.yml``, each as text: most are the same in many versions."""
    (rows,) = re.findall(r"(?ms)^claims:\n(.*?)(?=^\w|\Z)", text)
    return set(re.split(r"(?m)^(?= *- id: )", rows)) - {""}


def claims(texts):
    return yaml.load("".join(texts), yaml.CSafeLoader)


def forms(texts):
    """The rules of claims of any age by claim, in the form of ``str(Rule)``."""
    for row in claims(texts):
        words = {case: said.partition(":")[0] for case, said in row.get("rule", {}).items()}
        parts = [f"{word} if {case}" if case[0] in "<>" else f"{case} {word}"
                 for case, word in words.items() if case not in ("uncertain", "one part")]  # fmt: skip
        if parts:
            yield row["id"], "; ".join(parts)


def cases(form):
    """Sign, threshold and kind of word of a rule's cases; what is no rule stays as it is.

    A case before the last that gets the same kind of word is none.
    """
    parts = [part for part in form.split("; ") if "if one part" not in part]
    matches = [PART.fullmatch(part) for part in parts]
    if not all(matches):
        return form
    kinds = [next((k for k in KINDS if (m[1] or m[4]).startswith(k)), "no") for m in matches]
    found = [(m[2], float(m[3] or 0), kind) for m, kind in zip(matches, kinds, strict=True)]
    while len(found) > 1 and found[-2][2] == found[-1][2]:
        del found[-2]
    return tuple(found)


def test_every_rule_changed_after_its_first_verdict_says_so():
    if not (ROOT / ".git").exists() or (ROOT / ".git/shallow").exists():
        pytest.skip("there is no git history, or only its end")
    untold = [change for change in silent(ROOT) if change not in EARLIER.items()]
    assert not untold, "add an entry to the claim's 'amended', with the form as 'was'"


def form(threshold):
    return f"holds if >= {threshold}; otherwise not seen at this scale"


def write(root, threshold, amended=()):
    rule = {f">= {threshold}": "holds", "otherwise": "not seen at this scale: 0"}
    row = {"id": "R01", "rule": rule, "amended": [{"was": was} for was in amended]}
    (root / ROWS).write_text(yaml.safe_dump({"claims": [row]}, sort_keys=False))


def commit(root, threshold):
    write(root, threshold)
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "A change")


@pytest.fixture
def root(tmp_path):
    """A repository whose rule asks for a half in the first commit."""
    (tmp_path / "book").mkdir()
    git(tmp_path, "init", "--quiet")
    commit(tmp_path, 0.5)
    return tmp_path


def test_a_silent_change_is_found_also_if_taken_back_merged_or_not_committed(root):
    def found():
        return [float(re.search(r"0\.\d", form)[0]) for _, form in silent(root)]

    assert found() == []
    commit(root, 0.4)
    assert found() == [0.5]
    commit(root, 0.5)
    assert found() == [0.4]
    git(root, "checkout", "--quiet", "-b", "branch")
    commit(root, 0.3)
    git(root, "checkout", "--quiet", "-")
    git(root, "merge", "--quiet", "--no-ff", "--no-commit", "branch")
    commit(root, 0.2)  # which is in neither of its parents
    write(root, 0.6)
    assert found() == [0.2, 0.3, 0.4, 0.5]
    write(root, 0.6, [form(0.2), form(0.4), "the measure was another"])
    assert found() == [0.3, 0.5]


@pytest.mark.parametrize("other, is_same", [
    ("holds if >= 0.50; otherwise refuted", True),
    ("holds if >= 0.5; the opposite was seen here if < 0; otherwise too small to see", True),
    ("holds if > 0.5; otherwise not seen at this scale", False),
    ("holds if >= 0.51; otherwise not seen at this scale", False),
    ("qualified, in part if >= 0.5; otherwise not seen at this scale", False),
    ("holds if >= 0.5; qualified if >= 0.25; otherwise not seen at this scale", False),
    ("always history, cited", False),
    ("not a rule at all", False),
])  # fmt: skip
def test_another_sign_threshold_or_kind_of_word_is_a_change(other, is_same):
    assert (cases(other) == cases(form(0.5))) == is_same
