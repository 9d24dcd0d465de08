import minivit
from studies.runner.run import operations


def test_operations_are_those_of_all_matrix_products_also_within_the_fused_kernel():
    tokens, dim, hidden, depth, patch, classes = 64, 128, 256, 6, 3 * 4 * 4, 10
    block = 4 * tokens * dim**2 + 2 * tokens**2 * dim + 2 * tokens * dim * hidden
    expected = tokens * patch * dim + depth * block + dim * classes
    assert operations(minivit.create("vit_32px", pool="mean")) == expected
