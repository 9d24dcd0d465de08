"""Mutants of chapter 14's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

KEPT = "kept = rows[values {} tolerance * values[0]]"
SYSTEM = "system = torch.cat([columns, {}[..., None]], dim=-1)"

EQUIVALENT = {
    "with_statistics": {},
    "rms_input": {},
    "norm_pullback": {
        "u = x - x.mean(-1, keepdim=True) -> u = x.mean(-1, keepdim=True) - x": (
            "z stands in the result twice, and so its sign does not matter"
        ),
    },
    "forgotten": {
        f"{KEPT.format('>')} -> {KEPT.format('>=')}": "no singular value is equal to the threshold",
    },
    "patches_behind_rms": {
        "return found[..., :-1, 0] -> return found[..., :-1, -1]": "there is one right side",
        f"{SYSTEM.format('-w')} -> {SYSTEM.format('w')}": (
            "the scale comes out negative, and the patches are the same"
        ),
    },
}
