"""The audit's page, which stands alone, and its tables for a paper's appendix."""

from collections.abc import Mapping, Sequence
from typing import Any

from vitlab.claims.ledger import AGREEMENTS, Claim
from vitlab.claims.looks import Look
from vitlab.claims.strips import Row, Strip, strip
from vitlab.extras import extra

MEANS = {  # of the states without a figure
    "cannot be asked": "could not be asked of this model",
    "failed": "failed",
    "left out": "left out",
}


def html(
    report: Mapping[str, Any], claims: Mapping[str, Claim], looks: Sequence[Look], unseen: str
) -> str:
    """The page: ``looks`` are its images, ``unseen`` says why there are none."""
    strips = {row["id"]: _strip(row, claims[row["id"]]) for row in measured(report)}
    return _rendered("audit.html.j2", report, looks=looks, unseen=unseen, strips=strips)


def markdown(report: Mapping[str, Any]) -> str:
    """The audit as Markdown."""
    return _rendered("audit.md.j2", report)


def measured(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The claims that have a figure."""
    return [row for row in report["claims"] if row["state"] == "measured"]


def summary(report: Mapping[str, Any]) -> str:
    """The outcome, in a sentence."""
    counts, states = report["agreement"], report["states"]
    agree = counts["same word"] + counts["same side"]
    said = [f"{agree} of {states['measured']} measured claims agree with the book"]
    if other := counts["other side"]:
        said.append(f"{other} {'does' if other == 1 else 'do'} not")
    if undecided := counts["undecided"]:
        said.append(f"{undecided} {'is' if undecided == 1 else 'are'} undecided")
    rest = [f"{states[state]} {MEANS[state]}" for state in MEANS if states[state]]
    more = f" Not measured: {', '.join(rest)}." if rest else ""
    return f"{', '.join(said)}.{more}"


def _rendered(template: str, report: Mapping[str, Any], **more: Any) -> str:
    with extra("audit"):
        from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("vitlab.claims", "templates"),
        autoescape=template.endswith(".html.j2"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"interval": interval, "cell": _cell, "line": _line}
    rows = [row for row in report["claims"] if row["state"] != "measured"]
    return environment.get_template(template).render(
        report=report,
        measured=measured(report),
        unmeasured=rows,
        summary=summary(report),
        agreements=AGREEMENTS,
        means=MEANS,
        **more,
    )


def interval(row: Mapping[str, Any]) -> str:
    """The 95 % interval of a claim's figure, with the digits that the book prints."""
    if row["low"] is None:
        return ""
    low, high = (f"{row[end]:.3g}" for end in ("low", "high"))
    return f"{low} to {high}" if low != high else "narrower than the digits shown"


def _strip(row: Mapping[str, Any], claim: Claim) -> Strip:
    book = row["book"]
    rows: list[Row] = [
        ("this model", "model", row["figure"], row["low"], row["high"], row["printed"]),
        ("the book's", "book", book["value"], book["low"], book["high"], book["printed"]),
    ]
    for name, figure in row["baselines"].items():
        rows.append((name, "baseline", figure, None, None, claim.printed(figure)))
    return strip(claim, rows)


def _cell(text: str) -> str:
    """Text in a cell of a Markdown table."""
    return text.replace("|", "\\|").replace("\n", " ")


def _line(curves: Mapping[str, Sequence[float | None]]) -> dict[str, Any]:
    """Lines through values by depth, as points of a drawing 100 wide and 40 high."""
    values = [x for curve in curves.values() for x in curve if x is not None]
    low, high = min(values, default=0.0), max(values, default=0.0)
    span = (high - low) or 1.0
    points = {}
    for name, curve in curves.items():
        step = 100 / max(len(curve) - 1, 1)
        places = (
            (i * step, 40 * (1 - (x - low) / span)) for i, x in enumerate(curve) if x is not None
        )
        points[name] = " ".join(f"{x:.2f},{y:.2f}" for x, y in places)
    longest = max(len(curve) for curve in curves.values())
    return {"low": low, "high": high, "points": points, "longest": longest}
