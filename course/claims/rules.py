"""A rule turns a measured figure into a verdict. It is written before the measurement."""

import math
import operator
import re
from dataclasses import dataclass

WORDS = (
    "holds",
    "qualified",
    "refuted",
    "not seen at this scale",
    "too uncertain to tell",
    "history, cited",
    "cannot be measured here",
)
NEEDS_WHY = ("qualified", "cannot be measured here")
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def word_of(verdict: str) -> str:
    """The word before the colon of ``"qualified: only for equal norms"``.

    Raises ValueError for another word, or one that needs a reason and has none.
    """
    word, _, why = verdict.partition(":")
    if word not in WORDS:
        raise ValueError(f"a verdict begins with one of {WORDS}: got {verdict!r}")
    if word in NEEDS_WHY and not why.strip():
        raise ValueError(f"'{word}' needs a reason after a colon: got {verdict!r}")
    return word


@dataclass(frozen=True)
class Rule:
    """Cases in order, ``((sign, threshold, verdict), ...)``, of which the first that fits decides.

    In ``claims.yml`` a rule is a mapping, ``{"<= 1e-6": holds, otherwise: "refuted: ..."}``, or
    ``{always: "history, cited: ..."}`` where there is nothing to measure.
    """

    cases: tuple[tuple[str, float, str], ...]
    otherwise: str

    @classmethod
    def parse(cls, mapping: dict[str, str]) -> "Rule":
        """Reads a rule of ``claims.yml``; one that is malformed raises ValueError."""
        *cases, (last, otherwise) = mapping.items()
        if last != ("otherwise" if cases else "always"):
            raise ValueError(f"a rule ends with 'otherwise' or is one 'always': got {mapping}")
        parsed = []
        for case, verdict in cases:
            match = re.fullmatch(r"(<=?|>=?) (\S+)", case)
            if not match:
                raise ValueError(f"expected a comparison such as '<= 1e-6': got {case!r}")
            parsed.append((match[1], float(match[2]), verdict))
        verdicts = [verdict for *_, verdict in parsed] + [otherwise]
        for verdict in verdicts:
            word_of(verdict)
        if any(a == b for a, b in zip(verdicts, verdicts[1:], strict=False)):
            raise ValueError(f"neighbouring cases must differ in their verdict: got {mapping}")
        return cls(tuple(parsed), otherwise)

    @property
    def measures(self) -> bool:
        """Whether there is a figure to compare."""
        return bool(self.cases)

    def apply(self, figure: float) -> str:
        """The verdict for one figure."""
        for sign, threshold, verdict in self.cases:
            if COMPARE[sign](figure, threshold):
                return verdict
        return self.otherwise

    @property
    def thresholds(self) -> list[float]:
        """The numbers that a figure is compared with."""
        return [threshold for _, threshold, _ in self.cases]

    def decide(self, mean: float, half: float) -> str:
        """The verdict for every figure between ``mean - half`` and ``mean + half``.

        Across holds and qualified it is qualified; across any others, too uncertain to tell.
        """
        low, high = mean - half, mean + half
        inside = [x for x in self.thresholds if low <= x <= high]
        beside = [math.nextafter(x, end) for x in inside for end in (low, high)]
        verdicts = {self.apply(x) for x in (low, high, *inside, *beside)}
        words = {word_of(verdict) for verdict in verdicts}
        if len(words) == 1:
            return self.apply(mean)
        if words == {"holds", "qualified"}:
            return next(verdict for verdict in verdicts if word_of(verdict) == "qualified")
        return "too uncertain to tell: the interval reaches the rule's threshold"

    def __str__(self) -> str:
        cases = [f"{word_of(verdict)} if {sign} {x:g}" for sign, x, verdict in self.cases]
        last = word_of(self.otherwise)
        return "; ".join([*cases, f"otherwise {last}" if cases else f"always {last}"])
