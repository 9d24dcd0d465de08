"""Claims of the sources and the book's verdicts.

``rows`` reads claims.yml, ``rules`` decides a verdict's word, ``verdict`` shows it in a chapter,
``ledger`` collects the verdicts of all chapters, and ``typed`` finds figures that were typed in.
"""

from course.claims.ledger import harvest
from course.claims.rows import Claim, load
from course.claims.verdict import verdict

__all__ = ["Claim", "harvest", "load", "verdict"]
