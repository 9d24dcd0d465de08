"""Claims of the sources and the book's verdicts.

``rows`` reads claims.yml, ``verdict`` shows a verdict in a chapter, and ``ledger`` collects the
verdicts of all chapters.
"""

from course.claims.estimate import Estimate, on_images, unpaired
from course.claims.readings import Readings, readings
from course.claims.rows import load
from course.claims.verdict import verdict

__all__ = ["Estimate", "Readings", "load", "on_images", "readings", "unpaired", "verdict"]
