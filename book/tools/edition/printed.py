"""What the book itself prints of a solution, as its own demonstration: where, and why that is so.

Nothing else of a solution may stand in a chapter, and nothing of it anywhere else.
"""

from typing import NamedTuple


class Printed(NamedTuple):
    """Cells of a chapter that have a run of a solution's code in common with it."""

    solution: str
    chapter: str
    cells: tuple[str, ...]
    why: str


CELLS = (
    Printed("attention_weights", "00_in_an_hour", ("h016",),
            "the first hour writes attention for its reader"),
    Printed("multi_head", "00_in_an_hour", ("h016",), "the same class"),
    Printed("multi_head", "02_attention", ("c041",),
            "the package's MultiHeadAttention, to which the chapter goes on from the exercise"),
    Printed("multi_head", "14_is_attention_invertible", ("c011",),
            "attention from its weights: the map whose inverse chapter 14 looks for"),
    Printed("norm_pullback", "13_what_layernorm_forgets", ("c007", "c028"),
            "the norm and its Jacobian, as formulas; the exercise multiplies by it without it"),
    Printed("undo_residual", "15_inverting_representations", ("byhand",),
            "chapter 15 undoes one block by hand; the exercise stands in the chapter before"),
)  # fmt: skip

CHECK = "a check says the formula by which it judges, and is open to read"
PACKAGE = "the package's own text"
STUDIES = "the text of a study, which trains models"
FILES = {
    ("move_by", "course/check/chapter_03.py"): CHECK,
    ("logits_from_file", "course/check/chapter_04.py"): CHECK,
    ("paired_interval", "course/check/chapter_07.py"): CHECK,
    ("feature_cka", "course/check/chapter_10.py"): CHECK,
    ("left_out", "course/check/chapter_10.py"): CHECK,
    ("norm_pullback", "course/check/chapter_13.py"): CHECK,
    ("undo_residual", "course/check/chapter_14.py"): CHECK,
    ("power_law", "course/check/chapter_23.py"): CHECK,
    ("attention_weights", "minivit/vit.py"): PACKAGE,
    ("masked_softmax", "minivit/vit.py"): PACKAGE,
    ("multi_head", "minivit/vit.py"): PACKAGE,
    ("scaled_dot_product_attention", "minivit/vit.py"): PACKAGE,
    ("alternate", "minivit/hybrid.py"): PACKAGE,
    ("noise_in_band", "vitlab/instruments/frequency.py"): PACKAGE,
    ("robust_images", "vitlab/instruments/frequency.py"): PACKAGE,
    ("feature_cka", "studies/representations.py"): STUDIES,
    ("training_step", "studies/shared/training.py"): STUDIES,
}
