"""The audit as a page that stands alone, and as tables for a paper's appendix."""

from collections.abc import Mapping
from typing import Any

from vitlab.claims.ledger import AGREEMENTS, measured
from vitlab.extras import extra

MEANS = {  # of the states without a figure
    "cannot be asked": "could not be asked of this model",
    "failed": "failed",
    "left out": "left out",
}


def summary(report: Mapping[str, Any]) -> str:
    """The outcome, in a sentence."""
    counts, states = report["agreement"], report["states"]
    agree = counts["same word"] + counts["same side"]
    parts = [f"{agree} of {states['measured']} measured claims agree with the book"]
    if other := counts["other side"]:
        parts.append(f"{other} {'does' if other == 1 else 'do'} not")
    if undecided := counts["undecided"]:
        parts.append(f"{undecided} {'is' if undecided == 1 else 'are'} undecided")
    rest = [f"{states[state]} {MEANS[state]}" for state in MEANS if states[state]]
    more = f" Not measured: {', '.join(rest)}." if rest else ""
    return f"{', '.join(parts)}.{more}"


def rendered(report: Mapping[str, Any], ending: str) -> str:
    """The audit as ``"html"``, the page, or as ``"md"``, its tables."""
    with extra("audit"):
        from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("vitlab.claims", "templates"),
        autoescape=ending == "html",
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"interval": _interval, "cell": _cell}
    return environment.get_template(f"audit.{ending}.j2").render(
        report=report,
        measured=measured(report),
        unmeasured=[row for row in report["claims"] if row["state"] != "measured"],
        summary=summary(report),
        agreements=AGREEMENTS,
        means=MEANS,
    )


def _interval(row: Mapping[str, Any]) -> str:
    """The 95 % interval of a claim's figure."""
    if row["low"] is None:
        return ""
    low, high = (f"{row[end]:.3g}" for end in ("low", "high"))
    return f"{low} to {high}" if low != high else "narrower than the digits shown"


def _cell(text: str) -> str:
    """Text in a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")
