"""A rule turns a measured figure into a verdict: a word, and a sentence of what was found."""

import math
import operator
import re
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from jaxtyping import Shaped

from vitlab.calls import expect
from vitlab.extras import extra

KINDS = ("with a condition", "for another reason", "misprinted", "in part")
QUALIFIED = tuple(f"qualified, {kind}" for kind in KINDS)
WEAKER = "weaker than claimed"
YES = ("holds", *QUALIFIED, WEAKER)  # from the strongest to the weakest
NO = ("refuted", "the opposite was seen here")  # likewise
UNCERTAIN = "too uncertain to tell"
DEPENDS = "depends on training"  # uncertain too, since it changes with when training ends
UNMEASURED = ("history, cited", "cannot be measured here")
WORDS = (*YES, UNCERTAIN, DEPENDS, *reversed(NO), *UNMEASURED)
NEEDS_WHY = (*QUALIFIED, "cannot be measured here")
ROUNDING = 1e-4  # a threshold below this asks whether two things are equal up to rounding
COMPARE = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def word_of(verdict: str) -> str:
    """The word before the colon of ``"qualified, with a condition: only for equal norms"``."""
    word, _, why = verdict.partition(":")
    expect(word in WORDS, f"a verdict that begins with one of {WORDS}", repr(verdict))
    reasoned = word not in NEEDS_WHY or why.strip()
    expect(reasoned, f"a reason after '{word}' and a colon", repr(verdict))
    return word


def student(freedom: float, seldom: float = 0.05) -> float:
    """What Student's t exceeds, on either side, as seldom as this."""
    with extra("audit"):
        from scipy.special import stdtrit  # faster to import than scipy.stats
    return float(stdtrit(freedom, 1 - seldom / 2))


def half_width(values: Shaped[np.ndarray, "values"]) -> float:
    """Half the 95 % interval of the mean, by Student's t; zero for a single number."""
    if len(values) == 1:
        return 0.0
    return student(len(values) - 1) * float(values.std(ddof=1)) / math.sqrt(len(values))


def weaker(word: str) -> int:
    """How weak a word is beside those that say the same yes or no; kinds of qualified are equal."""
    return 1 if word in QUALIFIED else (*YES, *NO).index(word)


@dataclass(frozen=True)
class Rule:
    """Cases in order, ``((sign, threshold, verdict), ...)``, of which the first that fits decides.

    In ``claims.yml`` a mapping, ``{"<= 1e-6": holds, otherwise: "refuted: ..."}``, or ``{always:
    "history, cited: ..."}``; ``uncertain`` is a sentence for an interval across yes and no, and
    ``one part`` the verdict where of parts that are measured apart one is certain and another not.
    """

    cases: tuple[tuple[str, float, str], ...]
    otherwise: str
    uncertain: str = ""
    one_part: str = ""

    @classmethod
    def parse(cls, mapping: dict[str, str]) -> "Rule":
        """Reads a rule of ``claims.yml``; one that is malformed raises ValueError."""
        mapping = dict(mapping)
        uncertain, one_part = mapping.pop("uncertain", ""), mapping.pop("one part", "")
        *cases, (last, otherwise) = mapping.items()
        ends = last == ("otherwise" if cases else "always")
        expect(ends, "a rule that ends with 'otherwise' or is one 'always'", mapping)
        parsed = []
        for case, verdict in cases:
            match = re.fullmatch(r"(<=?|>=?) (\S+)", case)
            if not match:
                raise ValueError(f"expected a comparison such as '<= 1e-6': got {case!r}")
            parsed.append((match[1], float(match[2]), verdict))
        verdicts = [verdict for *_, verdict in parsed] + [otherwise]
        for verdict in (*verdicts, *([one_part] if one_part else [])):
            word_of(verdict)
        differ = all(a != b for a, b in pairwise(verdicts))
        expect(differ, "neighbouring cases that differ in their verdict", mapping)
        return cls(tuple(parsed), otherwise, uncertain, one_part)

    @property
    def measures(self) -> bool:
        """Whether there is a figure to compare."""
        return bool(self.cases)

    @property
    def words(self) -> set[str]:
        """Every word that the rule can print for a single figure."""
        return {word_of(verdict) for *_, verdict in self.cases} | {word_of(self.otherwise)}

    @property
    def thresholds(self) -> list[float]:
        """The numbers that a figure is compared with."""
        return [threshold for _, threshold, _ in self.cases]

    def apply(self, figure: float) -> str:
        for sign, threshold, verdict in self.cases:
            if COMPARE[sign](figure, threshold):
                return verdict
        return self.otherwise

    def decide(self, mean: float, half: float) -> str:
        """The verdict for all figures from ``mean - half`` to ``mean + half``: the weakest word."""
        low, high = mean - half, mean + half
        inside = [x for x in self.thresholds if low <= x <= high]
        beside = [math.nextafter(x, end) for x in inside for end in (low, high)]
        verdicts = [self.apply(x) for x in (mean, low, high, *inside, *beside)]
        words = [word_of(verdict) for verdict in verdicts]
        if len(set(words)) == 1:
            return verdicts[0]
        if set(words) <= set(YES) or set(words) <= set(NO):
            weakest = max(words, key=weaker)
            return verdicts[words.index(weakest)]
        across = " and ".join(f"'{word}'" for word in WORDS if word in words)
        return f"{UNCERTAIN}: {self.uncertain or f'the interval reaches across {across}'}"

    def printed(self, x: float, form: str) -> str:
        """A figure in a format; below a rounding threshold its digits mean nothing and go."""
        limit = min(self.thresholds)
        if 0 < limit <= ROUNDING and 0 <= x < limit:
            return f"below {limit:g}"
        text = f"{x:{form}}"
        return text.lstrip("-") if float(text) == 0 else text

    def __str__(self) -> str:
        cases = [f"{word_of(verdict)} if {sign} {x:g}" for sign, x, verdict in self.cases]
        last = word_of(self.otherwise)
        part = [f"{word_of(self.one_part)} if one part alone is certain"] if self.one_part else []
        return "; ".join([*cases, f"otherwise {last}" if cases else f"always {last}", *part])
