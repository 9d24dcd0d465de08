"""How many heads, and how many blocks, in a small ViT?

Heads share the width of 64 among them, so their number changes no count of parameters.
"""

from dataclasses import replace

from studies.runner.study import Study
from studies.shared.small_models import search, variants

# The first, of six blocks with four heads, is the model of the search.
ROWS = {
    "base": {},
    **{f"heads_{n}": {"heads": n} for n in (1, 2, 8)},
    **{f"depth_{n}": {"depth": n} for n in (1, 2, 4)},
}
STUDY = Study(
    "heads",
    {name: search("vit") for name in ROWS},
    lambda name, best: variants(replace(best, changes=best.changes | ROWS[name]), range(3)),
)
