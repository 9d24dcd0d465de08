"""Mutants of chapter 01's official solutions that pass their checks, and why they are right too.

The key is "old line -> new line", as course.check.mutants writes it.
"""

MORE_VECTORS = "the first singular vectors are the same, and those added are not kept"
SVD = "components = torch.linalg.svd(centred{}).Vh[:, :keep]"
REDUCED = SVD.format(", full_matrices=False")
BLOCKS = "blocks = tokens.reshape({}, 2, columns // 2, {})"
RIGHT = BLOCKS.format("batch, rows // 2", "2, dim")
WHERE = "return torch.where(counts {} 0, total / counts, images)"

EQUIVALENT = {
    "patch_at": {},
    "convolution_weight": {},
    "merged_tokens": {
        f"{RIGHT} -> {BLOCKS.format('batch, rows // 2', 'dim, 2')}": (
            "the last two axes are merged again as they were split"
        ),
        f"{RIGHT} -> {BLOCKS.format('rows // 2, batch', '2, dim')}": (
            "the first two axes count the same rows of blocks in the same order"
        ),
    },
    "padded_patches": {},
    "denoised": {
        f"{REDUCED} -> {SVD.format(', full_matrices=True')}": MORE_VECTORS,
        f"{REDUCED} -> {SVD.format('')}": MORE_VECTORS,
        f"{WHERE.format('>')} -> {WHERE.format('!=')}": "a count is never negative",
    },
}
