"""Mutants of chapter 02's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

SAME_WIDTH = "q and k have the same last axis"
FOUR_AXES = "with four axes, axis 2 is axis -2"
KIND_ONLY = "a new tensor takes from the one it is made with only dtype and device, equal for all"
BROADCAST = "without leading axes it broadcasts in the first chunk, which gives it the right shape"

TRANSPOSE = "products = q @ k.transpose(-2, -1) -> products = q @ k.transpose({}, -1)"
HEADS = (
    "scores = q @ k.transpose(-2, -1) / math.sqrt(d_head)"
    " -> scores = q @ k.transpose({}, -1) / math.sqrt(d_head)"
)
MAXIMUM = (
    "running_max = q.new_full((*q.shape[:-1], 1), -math.inf)"
    " -> running_max = {}.new_full((*q.shape[:{}], 1), -math.inf)"
)
OUTPUT = (
    "output = q.new_zeros((*q.shape[:-1], v.shape[-1]))"
    " -> output = {}.new_zeros((*q.shape[:{}], v.shape[-1]))"
)
LOOP = "for start in range(0, k.shape[-2], chunk): -> for start in range(0, v.shape[-2], chunk):"
SUM = "running_sum = torch.zeros_like(running_max) -> running_sum = torch.ones_like(running_max)"

EQUIVALENT = {
    "scaled_scores": {
        "d_head = q.shape[-1] -> d_head = k.shape[-1]": SAME_WIDTH,
        TRANSPOSE.format(2): FOUR_AXES,
    },
    "masked_softmax": {},
    "antisymmetric_share": {
        "antisymmetric = (b - b.T) / 2 -> antisymmetric = (b.T - b) / 2": "the sign is squared",
    },
    "grouped_query_attention": {HEADS.format(2): FOUR_AXES},
    "chunked_attention": {
        "q = q / math.sqrt(q.shape[-1]) -> q = q / math.sqrt(k.shape[-1])": SAME_WIDTH,
        LOOP: "there are as many values as keys",
        MAXIMUM.format("k", -1): KIND_ONLY,
        MAXIMUM.format("v", -1): KIND_ONLY,
        MAXIMUM.format("q", "-0"): BROADCAST,
        OUTPUT.format("k", -1): KIND_ONLY,
        OUTPUT.format("v", -1): KIND_ONLY,
        OUTPUT.format("q", "-0"): BROADCAST,
        SUM: "the first chunk multiplies it by exp(-inf) = 0",
    },
}
