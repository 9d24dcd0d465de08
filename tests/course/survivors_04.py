"""Mutants of chapter 04's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

TWO_ORDERS = "there are two orders, and 'res-post' comes after 'parallel' in the alphabet"
NAMED = "the message still contains every name that is wrong"
SQUARE = "patches are square"

DRAW = "kept = torch.rand(len(branch), 1, 1) {} rate"
VARIANCE = "variance = centred.sum(0).square().mean({}, keepdim=True)"
RAISE = "raise ValueError(f{})"
JOINED = "\"missing, or of no use: {', '.join(sorted(wrong))}\""
UNSORTED = "\"missing, or of no use: {', '.join(wrong)}\""
AS_LIST = "'missing, or of no use: {sorted(wrong)}'"
WRONG = "wrong = state.keys() ^ (expected {} {{'cls_token', 'pos_embed'}})"
LARGEST = "blocks = [f'blocks.{{i}}' for i in range(max(numbers, default={}) + 1)]"
STRIDE = "x = F.conv2d(images, kernel, bias, stride=kernel.shape[{}])"
FIRST = "x = torch.cat([state['cls_token'].expand(len(x), {}, -1), x], dim=1)"

EQUIVALENT = {
    "channel_norm": {},
    "ordered_block": {
        "if order == 'parallel': -> if order is 'parallel':": "Python keeps one copy of the word",
        "if order == 'parallel': -> if order <= 'parallel':": TWO_ORDERS,
    },
    "drop_path": {
        f"{DRAW.format('>=')} -> {DRAW.format('>')}": "a draw is never equal to the rate",
    },
    "logit_shares": {
        f"{VARIANCE.format(-1)} -> {VARIANCE.format(1)}": "with two axes, axis 1 is axis -1",
    },
    "logits_from_file": {
        f"{RAISE.format(JOINED)} -> {RAISE.format(UNSORTED)}": NAMED,
        f"{RAISE.format(JOINED)} -> {RAISE.format(AS_LIST)}": NAMED,
        f"{LARGEST.format(0)} -> {LARGEST.format(1)}": (
            "a file without blocks lacks all names of any number of them"
        ),
        f"{WRONG.format('|')} -> {WRONG.format('^')}": "the two sets have nothing in common",
        f"{STRIDE.format(-1)} -> {STRIDE.format(-2)}": SQUARE,
        f"{FIRST.format(-1)} -> {FIRST.format(1)}": "there is one class token",
    },
}
