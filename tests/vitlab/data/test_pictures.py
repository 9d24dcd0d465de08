import numpy as np
import pytest
import torch
from PIL import Image

from vitlab.data.pictures import fitted, open_picture

COLOUR = np.random.default_rng(0).integers(0, 256, (6, 9, 3), np.uint8)
GREY = COLOUR[..., 0]


def stored(tmp_path, image, name="image.png", **settings):
    image.save(tmp_path / name, **settings)
    return open_picture(tmp_path / name)


def test_each_mode_becomes_grey_or_colour(tmp_path):
    opened = stored(tmp_path, Image.fromarray(GREY))
    assert opened.mode == "L" and np.array_equal(np.array(opened), GREY)
    assert set(np.unique(stored(tmp_path, Image.fromarray(GREY > 127)))) == {0, 255}  # one bit
    image = Image.fromarray(COLOUR).quantize(16)
    assert np.array_equal(np.array(stored(tmp_path, image)), np.array(image.convert("RGB")))
    red = stored(tmp_path, Image.new("CMYK", (8, 8), (0, 255, 255, 0)), "a.jpg", quality=100)
    assert red.mode == "RGB" and np.abs(np.array(red, int) - [255, 0, 0]).max() < 4
    frames = [Image.new("L", (4, 4), value) for value in (10, 200)]
    first = stored(tmp_path, frames[0], "a.gif", save_all=True, append_images=frames[1:])
    assert np.array(first.convert("L")).max() == 10


@pytest.mark.parametrize("name", ["a.png", "a.tiff"])
def test_sixteen_bits_are_rounded_to_eight(tmp_path, name):
    """Pillow#3011, pytorch#20524."""
    deep = (GREY.astype(int) * 257 + 100).clip(0, 65535).astype(np.uint16)
    for settings in ({}, {"transparency": int(deep[0, 0])} if name == "a.png" else {}):
        opened = stored(tmp_path, Image.fromarray(deep), name, **settings)
        assert opened.mode == "L" and np.array_equal(np.array(opened), GREY)


def test_pixels_without_a_known_range_are_refused(tmp_path):
    for mode in "I", "F":
        with pytest.raises(ValueError, match=f"at most 16 bits a channel: got mode {mode}"):
            stored(tmp_path, Image.fromarray(GREY).convert(mode), "a.tiff")


def test_what_is_transparent_lies_on_white(tmp_path):
    alpha = np.zeros((6, 9, 1), np.uint8)
    alpha[:, 3:] = 255
    opened = np.array(stored(tmp_path, Image.fromarray(np.concatenate([COLOUR, alpha], 2))))
    assert (opened[:, :3] == 255).all() and np.array_equal(opened[:, 3:], COLOUR[:, 3:])
    palette = Image.fromarray(np.array([[0, 1]], np.uint8), mode="P")
    palette.putpalette([10, 20, 30, 40, 50, 60])
    opened = np.array(stored(tmp_path, palette, transparency=0))
    assert opened.tolist() == [[[255] * 3, [40, 50, 60]]]
    grey = Image.fromarray(np.array([[[80, 0], [80, 255]]], np.uint8))
    assert grey.mode == "LA"
    assert np.array(stored(tmp_path, grey)).tolist() == [[[255] * 3, [80] * 3]]


def test_images_are_fitted_to_channels_and_size_all_as_one_by_one():
    x = torch.from_numpy(COLOUR).permute(2, 0, 1)[None]
    luma = np.array(Image.fromarray(COLOUR).convert("L")).astype(int)
    assert np.abs(fitted(x, None, 1)[0, 0].numpy().astype(int) - luma).max() <= 1
    assert torch.equal(fitted(x, (6, 9), 3), x) and torch.equal(fitted(x, None, None), x)
    x = torch.randint(0, 256, (2049, 1, 4, 6), dtype=torch.uint8)
    y = fitted(x, (8, 6), None)
    assert y.shape == (2049, 1, 8, 6)
    assert torch.equal(y[2048:], fitted(x[2048:], (8, 6), None))
    with pytest.raises(ValueError, match="4 GB of memory: got 2049 of 20000 x 30000 pixels"):
        fitted(x, (20000, 30000), 3)
