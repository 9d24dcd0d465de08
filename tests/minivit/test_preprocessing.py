import dataclasses
import re
from functools import partial

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image

from minivit.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocess
from tests.refusals import assert_refused
from vitlab.data.pictures import open_picture

MODELS = ["vit_b_16", "vit_b_32", "vit_l_16", "vit_l_32", "vit_h_14"]
SIZES = [(300, 401), (401, 300), (37, 90), (1, 1), (2, 51), (256, 256), (224, 224), (518, 517)]
WEIGHTS = [weights for model in MODELS for weights in torchvision.models.get_model_weights(model)]


def pixels(height, width, channels=3):
    g = torch.Generator().manual_seed(1000 * height + width)
    return torch.randint(0, 256, (channels, height, width), generator=g, dtype=torch.uint8)


def image(x):
    return Image.fromarray(x.permute(1, 2, 0).squeeze(-1).numpy())


@pytest.mark.parametrize("weights", WEIGHTS, ids=str)
def test_every_weights_preprocessing_equals_torchvisions_to_the_last_bit(weights):
    reference = weights.transforms()
    ours = Preprocess.like(reference)
    assert ours.size == tuple(weights.meta["min_size"])
    for height, width in SIZES:
        x = pixels(height, width)
        assert torch.equal(ours(x)[0], reference(x)), (height, width)
        assert torch.equal(ours(image(x))[0], reference(image(x))), (height, width)


def test_the_two_interpolations_and_the_two_kinds_of_image_are_told_apart():
    # Otherwise the test above could pass whatever is called for.
    x, linear = pixels(300, 401), Preprocess((224, 224), (256, 256))
    assert (linear(x) - dataclasses.replace(linear, interpolation="bicubic")(x)).abs().max() > 0.1
    assert 0 < (linear(x) - linear(image(x))).abs().max() < 0.1
    before, picture = x.clone(), image(x)
    linear(x).zero_(), linear(picture).zero_()  # what is given stays as it was
    assert torch.equal(x, before) and torch.equal(linear(picture), linear(image(before)))


def test_a_list_and_a_batch_give_what_their_images_give_one_by_one():
    p, a, b = Preprocess((32, 48), (40, 60)), pixels(50, 70), pixels(50, 70, 4)[1:]
    one_by_one = torch.cat([p(a), p(b)])
    assert one_by_one.shape == (2, 3, 32, 48)
    assert torch.equal(p([a, b]), one_by_one)
    assert torch.equal(p(torch.stack([a, b])), one_by_one)
    mixed = [image(a), pixels(9, 200), image(b)]
    assert torch.equal(p(mixed), torch.cat([p(x) for x in mixed]))


@pytest.mark.parametrize(
    ("height", "width"), [(20, 20), (64, 16), (16, 64), (30, 61), (31, 60), (15, 30)]
)
def test_a_size_that_is_not_square_is_covered_and_cut_from_the_middle(height, width):
    # A ramp along each axis: the crop keeps proportions and centre, whatever the image's shape.
    down = torch.linspace(0, 255, height)[:, None].expand(height, width)
    right = torch.linspace(0, 255, width).expand(height, width)
    x = torch.stack([down, right, right]).to(torch.uint8)
    y = Preprocess((32, 64), (32, 64), mean=(0.5,) * 3, std=(1,) * 3)(x)[0]
    assert y.shape == (3, 32, 64)
    assert y.mean((-2, -1)).abs().max() < 0.02  # an odd row left over is half a pixel
    scale = max(32 / height, 64 / width)
    for ramp, axis, share in [(y[0], 0, 32 / (height * scale)), (y[1], 1, 64 / (width * scale))]:
        values = ramp.mean(1 - axis)
        assert (values[-1] - values[0]).item() == pytest.approx(share, abs=0.06)


def test_fit_gives_the_pixels_that_are_then_scaled_by_default_as_imagenet():
    x, p = pixels(300, 401), Preprocess((32, 48), (40, 60), mean=(0.5,) * 3, std=(0.25,) * 3)
    assert p.fit(x).dtype == torch.uint8 and p.fit(x).shape == (1, 3, 32, 48)
    assert torch.equal((p.fit(x) / 255 - 0.5) / 0.25, p(x))
    white = torch.full((3, 4, 4), 255, dtype=torch.uint8)
    expected = (1 - torch.tensor(IMAGENET_MEAN)) / torch.tensor(IMAGENET_STD)
    torch.testing.assert_close(Preprocess((2, 2), (2, 2))(white)[0, :, 0, 0], expected)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "PA", "RGBA", "CMYK", "YCbCr", "HSV"])
def test_images_of_8_bits_a_channel_become_rgb(mode):
    source = image(pixels(40, 50))
    # PIL converts to a palette with transparency only by way of one without.
    picture = source.convert("P").convert("PA") if mode == "PA" else source.convert(mode)
    p = Preprocess((32, 32), (32, 32))
    assert picture.mode == mode
    assert torch.equal(p(picture), p(picture.convert("RGB")))
    assert picture.mode == mode  # the caller's image is as it was


def test_an_image_from_a_file_is_prepared_as_the_command_line_prepares_it(tmp_path):
    """ollama#18418, yolov5#405."""
    p, g = Preprocess((32, 32), (32, 32)), Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.5,))
    source, exif = image(pixels(40, 50)), Image.Exif()
    for orientation, angle in (6, -90), (8, 90), (3, 180):
        exif[0x0112] = orientation
        source.save(tmp_path / "a.png", exif=exif)
        assert torch.equal(p(Image.open(tmp_path / "a.png")), p(source.rotate(angle, expand=True)))
    for picture, settings in (
        (source, {"exif": exif}),
        (image(pixels(40, 50, 4)), {}),
        (source.quantize(8), {"transparency": 3}),
        (source, {"exif": b"Exif\x00\x00garbage"}),
        (image(pixels(40, 50, 1)), {"exif": exif}),
    ):
        path = tmp_path / "a.png"
        picture.save(path, **settings)
        for prepare in p, g:
            assert torch.equal(prepare(Image.open(path)), prepare(open_picture(path)))
    half = p.fit(Image.new("RGBA", (32, 32), (255, 0, 0, 128)))[0, :, 0, 0]
    assert half.tolist() == [255, 127, 127]


def test_one_mean_makes_grey_images():
    p, source = Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.25,)), image(pixels(20, 30))
    assert p(pixels(20, 30, 1)).shape == p(image(pixels(20, 30, 1))).shape == (1, 1, 8, 8)
    assert torch.equal(p(source), p(source.convert("L")))


def test_what_is_no_image_and_settings_that_cannot_be_are_refused():
    prepare, x, long = Preprocess((8, 8), (8, 8)), pixels(8, 8), Image.new("1", (9_000_000, 1))
    settings = partial(partial, Preprocess)
    refused = [
        (torch.rand(3, 8, 8), "values 0 to 255: got torch.float32 [3, 8, 8]"),
        (x.permute(1, 2, 0), "uint8 [3, height, width] or a batch of those"),
        (x[:, :0], "got torch.uint8 [3, 0, 8]"),
        (x[None][:0], "got torch.uint8 [0, 3, 8, 8]"),
        ([], "at least one image: got an empty list"),
        (Image.fromarray(np.zeros((8, 9), np.uint16)), "got mode I;16, 8 x 9"),
        (Image.new("F", (9, 8)), "got mode F, 8 x 9"),
        (Image.new("RGB", (0, 8)), "at least one pixel: got mode RGB, 8 x 0"),
        (np.zeros((8, 8, 3), np.uint8), "a PIL image or a uint8 tensor: got ndarray"),
        (long, "at most 64 megapixels once resized: 1 x 9000000 pixels become (8, 72000000)"),
    ]
    errors = TypeError, ValueError
    assert_refused((partial(prepare, given), errors, re.escape(said)) for given, said in refused)
    assert_refused([
        (settings(8.0, 8), ValueError, "8.0"),
        (settings((8, 9), 8), ValueError, r"at least size: got size=\(8, 9\), resize=\(8, 8\)"),
        (settings((0, 8), 8), ValueError, r"got size=\(0, 8\)"),
        (settings(8, 8, mean=0.5, std=0.5), ValueError, "0.5"),
        (settings(8, 8, mean=(0.5,)), ValueError, r"one entry or three each.*mean=\(0.5,\), std=\(0.229"),
        *((settings(8, 8, std=(0.5, s, 0.5)), ValueError, rf"std above zero: .*std=\(0.5, {s}, 0.5\)") for s in (0, -0.5)),
        (settings(8, 8, "cubic"), ValueError, "bicubic.* got interpolation='cubic'"),
    ])  # fmt: skip
