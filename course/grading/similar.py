"""Points out answers that look alike, whatever their names and comments: for a person to read."""

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import combinations

from course.grading.grade import Graded

WORDS = 12  # of a tree of code in a row that count as one thing
FEW = 15  # things, below which an answer says nothing
ALIKE = 0.7  # of the shorter answer, that the other has too
COMMON = 0.25  # of a class, or three students: what more of them have is nobody's own


def things(source: str) -> set[str]:
    """Runs of an answer's tree, without the names that its writer chose, and without texts."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for field in ("id", "arg", "name", "annotation", "returns", "docstring"):
            if hasattr(node, field):
                setattr(node, field, None)
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    words = re.findall(r"\w+", ast.dump(tree))
    return {" ".join(words[i : i + WORDS]) for i in range(len(words) - WORDS + 1)}


def alike(results: Iterable[Graded]) -> Mapping[str, str]:
    """By student, whose answers theirs look like, and in which exercises."""
    of: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    names = {}
    for each in results:
        names[each.submission.person] = each.submission.student
        for mark in each.marks:
            if mark.source and mark.state != "open":
                of[mark.name][each.submission.person] |= things(mark.source)
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for exercise, answers in of.items():
        shared = Counter(thing for own in answers.values() for thing in own)
        most = max(3, COMMON * len(answers))
        own = {who: {t for t in all_ if shared[t] < most} for who, all_ in answers.items()}
        for one, other in combinations(own, 2):
            least = min(len(own[one]), len(own[other]))
            if least >= FEW and len(own[one] & own[other]) >= ALIKE * least:
                found[one][names[other]].append(exercise)
                found[other][names[one]].append(exercise)
    return {
        who: "; ".join(f"like {name} in {', '.join(rest)}" for name, rest in others.items())
        for who, others in found.items()
    }
