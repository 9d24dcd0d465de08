"""Mutants of chapter 08's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

INSIDE = "inside = x @ Vh[s {} 0.0001 * s[{}]].T"
UNIT = "a, b = (F.normalize(a.flatten(1){}), F.normalize(b.flatten(1){}))"
PAIRING = "rows, columns = linear_sum_assignment({}, maximize=True)"

EQUIVALENT = {
    "on_one_scale": {},
    "share_in_span": {
        f"{INSIDE.format('>', 0)} -> {INSIDE.format('>=', 0)}": "no value equals the bound",
        f"{INSIDE.format('>', 0)} -> {INSIDE.format('>', 1)}": "a bound of the same size",
    },
    "cosine_by_offset": {},
    "matched_similarity": {
        f"{UNIT.format(', dim=1', ', dim=1')} -> {UNIT.format('', ', dim=1')}": "the default",
        f"{UNIT.format(', dim=1', ', dim=1')} -> {UNIT.format(', dim=1', '')}": "the default",
        f"{PAIRING.format('cosines.numpy()')} -> {PAIRING.format('cosines')}": (
            "SciPy takes a tensor as an array"
        ),
    },
}
