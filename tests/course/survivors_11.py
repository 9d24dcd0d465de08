"""Mutants of chapter 11's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

STEP = "x = x + step_size {} torch.sign(constant - score) * slope"
LOGITS = "score = score + logits.gather(1, wanted[:, None]).{}()"
LEAF = "pictures = pictures.{}requires_grad_()"

EQUIVALENT = {
    "scores_on_the_way": {
        "score = slope @ x -> score = x @ slope": "a dot product has no order",
        f"{STEP.format('*')} -> {STEP.format('/')}": "1 and -1 are their own inverses",
    },
    "expected_change": {},
    "step_in_pixels": {},
    "robust_pictures": {
        f"{LOGITS.format('sum')} -> {LOGITS.format('mean')}": (
            "a factor of the gradient is divided out"
        ),
        "score = 0 -> score = 1": "a constant has no gradient",
        "score = 0 -> score = -1": "a constant has no gradient",
        f"{LEAF.format('detach().')} -> {LEAF.format('')}": (
            "the same numbers; their history is kept and not used"
        ),
        "return pictures.detach() -> return pictures": "the same numbers, with their history",
    },
}
