import torch

from minivit.parts import local_mask, window_mask


def drawn(mask, patch, grid):
    """The patches that one patch may attend to, as an image."""
    row = mask[patch].reshape(grid)
    return ["".join("x" if seen else "." for seen in line) for line in row.tolist()]


def test_a_window_holds_the_patches_of_its_tile():
    mask = window_mask((4, 6), 2)
    assert drawn(mask, 1 * 6 + 3, (4, 6)) == ["..xx..", "..xx..", "......", "......"]


def test_windows_at_the_edge_are_smaller():
    mask = window_mask((3, 5), 2)
    assert drawn(mask, 2 * 5 + 4, (3, 5)) == [".....", ".....", "....x"]


def test_shifted_windows_are_those_that_swin_rolls_around_without_the_wrapped_parts():
    mask = window_mask((6, 6), 4, shift=2)
    assert drawn(mask, 0, (6, 6)) == ["xx....", "xx....", *["......"] * 4]
    assert drawn(mask, 2 * 6 + 1, (6, 6)) == ["......"] * 2 + ["xx...."] * 4
    assert torch.equal(window_mask((6, 6), 4, shift=0), window_mask((6, 6), 4))


def test_a_neighbourhood_is_centred_on_its_patch_and_ends_with_the_image():
    mask = local_mask((4, 6), 3)
    assert drawn(mask, 1 * 6 + 3, (4, 6)) == ["..xxx.", "..xxx.", "..xxx.", "......"]
    assert drawn(mask, 0, (4, 6)) == ["xx....", "xx....", "......", "......"]
    assert drawn(local_mask((4, 6), 5), 0, (4, 6)) == ["xxx...", "xxx...", "xxx...", "......"]


def test_masks_are_symmetric_and_let_every_patch_see_itself():
    for mask in window_mask((3, 5), 2), local_mask((3, 5), 3):
        assert torch.equal(mask, mask.T)
        assert mask.diagonal().all()


def test_a_class_token_sees_all_and_is_seen_by_all():
    for make, size in (window_mask, 2), (local_mask, 3):
        mask = make((3, 5), size, class_token=True)
        assert mask.shape == (16, 16)
        assert mask[0].all() and mask[:, 0].all()
        assert torch.equal(mask[1:, 1:], make((3, 5), size))


def test_a_window_or_neighbourhood_as_large_as_the_image_is_no_restriction():
    assert window_mask((3, 5), 5).all()
    assert local_mask((3, 5), 9).all()
