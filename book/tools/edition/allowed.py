"""What the book itself prints of a solution: nothing else of one may stand where students read."""

# By solution and chapter, the cells that have a run of its code. In the first hour attention is
# written for the reader; chapter 2 goes on from the exercise to the package's class, of which
# chapter 14 inverts the map; chapter 13 has the norm and its Jacobian as formulas; chapter 15
# undoes one block by hand, whose exercise stands in the chapter before.
CELLS = {
    ("attention_weights", "00_in_an_hour"): {"h016"},
    ("multi_head", "00_in_an_hour"): {"h016"},
    ("multi_head", "02_attention"): {"c041"},
    ("multi_head", "14_is_attention_invertible"): {"c011"},
    ("norm_pullback", "13_what_layernorm_forgets"): {"c007", "c028"},
    ("undo_residual", "15_inverting_representations"): {"byhand"},
}
FILES = {
    # A check says the formula by which it judges, and is open to read.
    "course/check/chapter_03.py": {"move_by"},
    "course/check/chapter_04.py": {"logits_from_file"},
    "course/check/chapter_07.py": {"paired_interval"},
    "course/check/chapter_10.py": {"feature_cka", "left_out"},
    "course/check/chapter_13.py": {"norm_pullback"},
    "course/check/chapter_14.py": {"undo_residual"},
    "course/check/chapter_23.py": {"power_law"},
    # The package's own text, and that of studies, which train models.
    "minivit/vit.py": {"attention_weights", "masked_softmax", "multi_head"}
    | {"scaled_dot_product_attention"},
    "minivit/hybrid.py": {"alternate"},
    "vitlab/instruments/frequency.py": {"noise_in_band", "robust_images"},
    "studies/representations.py": {"feature_cka"},
    "studies/shared/training.py": {"training_step"},
}
