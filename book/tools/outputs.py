"""Compares stored outputs with new ones: for nbval (``book/conftest.py``) and ``execute``.

Another processor sums in another order, which moves last digits. So a number with a decimal point
or an exponent may differ by one unit of its last digit, if neither is zero. All else must be the
same: words, signs, whole numbers, every output of a verdict, and every line that says whether two
things agree (``PARITY``).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from decimal import Decimal
from itertools import zip_longest
from typing import Any

VERDICT = "application/vnd.minivit."  # how the kinds begin that a verdict's output has, or notes
PARITY = re.compile(r"\b(True|False|equals?|agrees?|agreement|same|parity|differs?|differences?)\b")
NUMBER = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+(?:e[-+]\d+)?|e[-+]\d+))(?!\.?\d)")
# Images are looked at, not compared byte for byte; the kernel draws random names for widgets.
SKIPPED = {"image/png", "image/jpeg", "application/vnd.jupyter.widget-view+json"}
OVERLOOKED = re.compile(
    r"(?<=data:image/webp;base64,)[A-Za-z0-9+/=\n]+|(?<=<Figure size )[0-9.]+x[0-9.]+(?= with)"
)


def one_unit(stored: str, new: str) -> bool:
    """Whether two numbers differ by at most one unit of the last digit, and only both are zero."""
    a, b = (Decimal(number.replace(",", "")) for number in (stored, new))
    unit = Decimal(1).scaleb(min(a.as_tuple().exponent, b.as_tuple().exponent))
    decimals = {len(number.partition(".")[2]) for number in (stored, new)}
    return len(decimals) == 1 and bool(a) == bool(b) and abs(a - b) <= unit


def same_line(stored: str, new: str) -> bool:
    if stored == new or PARITY.search(stored):
        return stored == new
    # Words and numbers in turn. A number that gets a digit more takes a space before it.
    old_parts, new_parts = (NUMBER.split(line) for line in (stored, new))
    words = [[re.sub(r" +$", " ", part) for part in parts[::2]] for parts in (old_parts, new_parts)]
    return words[0] == words[1] and all(map(one_unit, old_parts[1::2], new_parts[1::2]))


def changes(stored: Any, new: Any, strict: bool = False) -> list[str]:
    """The lines of two outputs that are not the same; what is no text must be equal."""
    if not isinstance(stored, str) or not isinstance(new, str):
        return [] if stored == new else [f"stored: {stored}\n   new: {new}"]
    lines = (OVERLOOKED.sub("", text).split("\n") for text in (stored, new))
    return [
        f"stored: {old}\n   new: {now}"
        for old, now in zip_longest(*lines, fillvalue="(no line)")
        if old != now and (strict or not same_line(old, now))
    ]


def of_verdict(output: Mapping[str, Any]) -> bool:
    kinds = [*output.get("data", {}), *output.get("metadata", {})]
    return any(kind.startswith(VERDICT) for kind in kinds)


def shown(outputs: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[Any, bool]]]:
    """What outputs show, by its kind, in order; and whether a verdict shows it."""
    found = defaultdict(list)
    for output in outputs:
        if output["output_type"] == "stream":
            kinds = {output["name"]: output["text"]}
        elif output["output_type"] == "error":
            kinds = {"error": f"{output['ename']}: {output['evalue']}"}
        else:
            kinds = output["data"]
        for kind in kinds.keys() - SKIPPED:
            found[kind].append((kinds[kind], of_verdict(output)))
    return found


def differences(stored: Iterable[Mapping[str, Any]], new: Iterable[Mapping[str, Any]]) -> list[str]:
    """How a cell's new outputs differ from those stored, in words; empty where they agree."""
    old, now = shown(stored), shown(new)
    found = []
    for kind in sorted(old.keys() | now.keys()):
        if len(old[kind]) != len(now[kind]):
            found.append(f"{kind}: {len(old[kind])} outputs are stored, and {len(now[kind])} new")
        for (text, strict), (other, also) in zip(old[kind], now[kind], strict=False):
            found += [f"{kind}\n{line}" for line in changes(text, other, strict or also)]
    return found
