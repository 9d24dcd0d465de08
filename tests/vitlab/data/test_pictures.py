import io

import numpy as np
import pytest
import torch
from PIL import Image

from vitlab.data.pictures import fitted, open_picture


def pixels(height, width, channels=3):
    g = np.random.default_rng(0)
    return g.integers(0, 256, (height, width, channels), np.uint8).squeeze(
        -1 if channels == 1 else ()
    )


COLOUR, GREY = pixels(6, 9), pixels(6, 9, 1)


def stored(tmp_path, image, name="image.png", **settings):
    image.save(tmp_path / name, **settings)
    return open_picture(tmp_path / name)


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tiff", "a.ppm", "a.tga"])
def test_colours_come_through_every_lossless_format(tmp_path, name):
    opened = stored(tmp_path, Image.fromarray(COLOUR), name)
    assert opened.mode == "RGB" and np.array_equal(np.array(opened), COLOUR)


@pytest.mark.parametrize(("name", "settings"), [("a.jpg", {"quality": 95}), ("a.webp", {"lossless": True}), ("a.gif", {}), ("a.avif", {"quality": 95})])  # fmt: skip
def test_formats_that_lose_something_are_read(tmp_path, name, settings):
    smooth = np.linspace(0, 250, 32 * 48 * 3).reshape(32, 48, 3).astype(np.uint8)
    opened = stored(tmp_path, Image.fromarray(smooth), name, **settings)
    assert opened.mode == "RGB" and np.abs(np.array(opened).astype(int) - smooth).mean() < 8


def test_grey_stays_grey(tmp_path):
    opened = stored(tmp_path, Image.fromarray(GREY))
    assert opened.mode == "L" and np.array_equal(np.array(opened), GREY)
    assert set(np.unique(stored(tmp_path, Image.fromarray(GREY > 127)))) == {0, 255}  # one bit


def test_a_palette_gives_its_colours(tmp_path):
    image = Image.fromarray(COLOUR).quantize(16)
    assert np.array_equal(np.array(stored(tmp_path, image)), np.array(image.convert("RGB")))


@pytest.mark.parametrize("name", ["a.png", "a.tiff"])
def test_sixteen_bits_are_rounded_to_eight(tmp_path, name):
    deep = (GREY.astype(int) * 257 + 100).clip(0, 65535).astype(np.uint16)
    for settings in ({}, {"transparency": int(deep[0, 0])} if name == "a.png" else {}):
        opened = stored(tmp_path, Image.fromarray(deep), name, **settings)
        assert opened.mode == "L" and np.array_equal(np.array(opened), GREY)


@pytest.mark.parametrize("mode", ["I", "F"])
def test_pixels_without_a_known_range_are_refused(tmp_path, mode):
    with pytest.raises(ValueError, match=f"at most 16 bits a channel: got mode {mode}"):
        stored(tmp_path, Image.fromarray(GREY).convert(mode), "a.tiff")


def test_what_is_transparent_lies_on_white(tmp_path):
    alpha = np.zeros((6, 9, 1), np.uint8)
    alpha[:, 3:] = 255
    opened = np.array(stored(tmp_path, Image.fromarray(np.concatenate([COLOUR, alpha], 2))))
    assert (opened[:, :3] == 255).all() and np.array_equal(opened[:, 3:], COLOUR[:, 3:])


def test_a_transparent_entry_of_a_palette_and_grey_with_alpha_lie_on_white(tmp_path):
    palette = Image.fromarray(np.array([[0, 1]], np.uint8), mode="P")
    palette.putpalette([10, 20, 30, 40, 50, 60])
    opened = np.array(stored(tmp_path, palette, transparency=0))
    assert opened.tolist() == [[[255] * 3, [40, 50, 60]]]
    grey = Image.fromarray(np.array([[[80, 0], [80, 255]]], np.uint8))
    assert grey.mode == "LA"
    assert np.array(stored(tmp_path, grey)).tolist() == [[[255] * 3, [80] * 3]]


def test_cmyk_becomes_rgb(tmp_path):
    red = Image.new("CMYK", (8, 8), (0, 255, 255, 0))
    opened = stored(tmp_path, red, "a.jpg", quality=100)
    assert opened.mode == "RGB" and np.abs(np.array(opened, int) - [255, 0, 0]).max() < 4


@pytest.mark.parametrize(("orientation", "turn"), [(1, lambda x: x), (2, lambda x: x[:, ::-1]), (3, lambda x: x[::-1, ::-1]), (6, lambda x: np.rot90(x, -1)), (8, np.rot90)])  # fmt: skip
def test_an_image_is_turned_as_its_exif_tag_says(tmp_path, orientation, turn):
    exif = Image.Exif()
    exif[0x0112] = orientation
    opened = stored(tmp_path, Image.fromarray(COLOUR), exif=exif)
    assert np.array_equal(np.array(opened), turn(COLOUR))


def test_a_broken_exif_tag_is_passed_over(tmp_path):
    opened = stored(tmp_path, Image.fromarray(COLOUR), exif=b"Exif\x00\x00garbage")
    assert np.array_equal(np.array(opened), COLOUR)


def test_of_several_frames_it_is_the_first(tmp_path):
    frames = [Image.new("L", (4, 4), value) for value in (10, 200)]
    opened = stored(tmp_path, frames[0], "a.gif", save_all=True, append_images=frames[1:])
    assert np.array(opened.convert("L")).max() == 10


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp", "a.tiff", "a.bmp"])
def test_a_truncated_file_raises(tmp_path, name):
    buffer = io.BytesIO()
    Image.fromarray(pixels(64, 64)).save(buffer, Image.registered_extensions()[f".{name[2:]}"])
    (tmp_path / name).write_bytes(buffer.getvalue()[: len(buffer.getvalue()) // 2])
    with pytest.raises((OSError, SyntaxError, ValueError)):
        open_picture(tmp_path / name)


def test_grey_is_what_pillow_calls_luma():
    x = torch.from_numpy(COLOUR).permute(2, 0, 1)[None]
    luma = np.array(Image.fromarray(COLOUR).convert("L")).astype(int)
    assert np.abs(fitted(x, None, 1)[0, 0].numpy().astype(int) - luma).max() <= 1


def test_fitted_leaves_alone_what_fits():
    x = torch.from_numpy(COLOUR).permute(2, 0, 1)[None]
    assert torch.equal(fitted(x, (6, 9), 3), x)
    assert torch.equal(fitted(x, None, None), x)


def test_fitted_resizes_many_as_one_by_one():
    x = torch.randint(0, 256, (2049, 1, 4, 6), dtype=torch.uint8)
    y = fitted(x, (8, 6), None)
    assert y.shape == (2049, 1, 8, 6)
    assert torch.equal(y[2048:], fitted(x[2048:], (8, 6), None))


def test_more_than_fits_is_refused():
    with pytest.raises(ValueError, match="4 GB of memory: got 3 of 20000 x 30000 pixels"):
        fitted(torch.zeros(3, 1, 2, 2, dtype=torch.uint8), (20000, 30000), 3)
