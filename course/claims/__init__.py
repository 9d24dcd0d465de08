"""Claims of the sources and what the book found: rows, rules, verdicts, the ledger."""

from course.claims.ledger import harvest
from course.claims.rows import Claim, load
from course.claims.verdict import verdict

__all__ = ["Claim", "harvest", "load", "verdict"]
