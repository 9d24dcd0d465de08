import dataclasses
import re

import numpy as np
import pytest
import torch
import torchvision
from PIL import Image

from minivit.preprocessing import IMAGENET_MEAN, IMAGENET_STD, Preprocess
from tests.refusals import unchecked
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
    cubic = dataclasses.replace(linear, interpolation="bicubic")
    assert (linear(x) - cubic(x)).abs().max() > 0.1
    assert 0 < (linear(x) - linear(image(x))).abs().max() < 0.1


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


def test_fit_gives_the_pixels_that_are_then_scaled():
    x, p = pixels(300, 401), Preprocess((32, 48), (40, 60), mean=(0.5,) * 3, std=(0.25,) * 3)
    assert p.fit(x).dtype == torch.uint8 and p.fit(x).shape == (1, 3, 32, 48)
    assert torch.equal((p.fit(x) / 255 - 0.5) / 0.25, p(x))


def test_the_scale_is_that_of_imagenet_by_default():
    white = torch.full((3, 4, 4), 255, dtype=torch.uint8)
    expected = (1 - torch.tensor(IMAGENET_MEAN)) / torch.tensor(IMAGENET_STD)
    torch.testing.assert_close(Preprocess((2, 2), (2, 2))(white)[0, :, 0, 0], expected)


MODES = ["1", "L", "LA", "P", "PA", "RGBA", "RGBX", "CMYK", "YCbCr", "HSV"]


@pytest.mark.parametrize("mode", MODES)
def test_images_of_8_bits_a_channel_become_rgb(mode):
    source = image(pixels(40, 50))
    # PIL converts to a palette with transparency only by way of one without.
    picture = source.convert("P").convert("PA") if mode == "PA" else source.convert(mode)
    p = Preprocess((32, 32), (32, 32))
    assert picture.mode == mode
    assert torch.equal(p(picture), p(picture.convert("RGB")))
    assert picture.mode == mode  # the caller's image is as it was


def written(image, path, **settings):
    image.save(path, **settings)
    return path


def test_an_image_from_a_file_is_prepared_as_the_command_line_prepares_it(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 3
    alpha = image(pixels(40, 50, 4))
    p, g = Preprocess((32, 32), (32, 32)), Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.5,))
    for path in (
        written(image(pixels(40, 50)), tmp_path / "turned.png", exif=exif),
        written(alpha, tmp_path / "clear.png"),
        written(image(pixels(40, 50)).quantize(8), tmp_path / "palette.png", transparency=3),
        written(image(pixels(40, 50)), tmp_path / "broken.png", exif=b"Exif\x00\x00garbage"),
        written(image(pixels(40, 50, 1)), tmp_path / "grey.png", exif=exif),
    ):
        for prepare in p, g:
            opened = Image.open(path)
            assert torch.equal(prepare(opened), prepare(open_picture(path))), path.name
    turned = p(Image.open(tmp_path / "turned.png"))
    assert torch.equal(turned, p(image(pixels(40, 50)).rotate(180)))
    half = p.fit(Image.new("RGBA", (32, 32), (255, 0, 0, 128)))[0, :, 0, 0]
    assert half.tolist() == [255, 127, 127]


def test_one_mean_makes_grey_images():
    p, x = Preprocess((8, 8), (8, 8), mean=(0.5,), std=(0.25,)), pixels(20, 30, 1)
    assert p(x).shape == p(image(x)).shape == (1, 1, 8, 8)
    grey = image(pixels(20, 30)).convert("L")
    assert torch.equal(p(image(pixels(20, 30))), p(grey))


def test_what_is_given_stays_as_it_was():
    x, p = pixels(224, 224), Preprocess((224, 224), (224, 224))
    before, picture = x.clone(), image(x)
    p(x).zero_(), p(picture).zero_()
    assert torch.equal(x, before)
    assert np.array_equal(np.array(picture), before.permute(1, 2, 0).numpy())


BAD = {
    "float": (torch.rand(3, 8, 8), "values 0 to 255: got torch.float32 [3, 8, 8]"),
    "channels last": (pixels(8, 8).permute(1, 2, 0), "uint8 [3, height, width] or a batch of those"),
    "four channels": (pixels(8, 8, 4), "got torch.uint8 [4, 8, 8]"),
    "no rows": (pixels(8, 8)[:, :0], "got torch.uint8 [3, 0, 8]"),
    "no images": (pixels(8, 8)[None][:0], "got torch.uint8 [0, 3, 8, 8]"),
    "empty list": ([], "at least one image: got an empty list"),
    "one bad of two": ([pixels(8, 8), pixels(8, 8, 1)], "got torch.uint8 [1, 8, 8]"),
    "16 bits": (Image.fromarray(np.zeros((8, 9), np.uint16)), "got mode I;16, 8 x 9"),
    "float image": (Image.new("F", (9, 8)), "got mode F, 8 x 9"),
    "empty image": (Image.new("RGB", (0, 8)), "at least one pixel: got mode RGB, 8 x 0"),
    "array": (np.zeros((8, 8, 3), np.uint8), "a PIL image or a uint8 tensor: got ndarray"),
    "a long line": (Image.new("1", (9_000_000, 1)), "at most 64 megapixels once resized: 1 x 9000000 pixels become (8, 72000000)"),
    "path": ("cat.jpg", "a PIL image or a uint8 tensor: got str"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_no_image_is_refused_with_what_was_given_and_expected(case):
    given, said = BAD[case]
    with unchecked(), pytest.raises((TypeError, ValueError), match=re.escape(said)):
        Preprocess((8, 8), (8, 8))(given)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"size": (8, 9), "resize": (8, 8)}, r"at least size: got size=\(8, 9\), resize=\(8, 8\)"),
        ({"size": (0, 8), "resize": (8, 8)}, r"got size=\(0, 8\)"),
        ({"size": (8, 8), "resize": (8, 8), "mean": (0.5,)}, r"one entry or three each.*mean=\(0.5,\), std=\(0.229"),
        ({"size": (8, 8), "resize": (8, 8), "std": (0.5, 0, 0.5)}, r"std no zero: .*std=\(0.5, 0, 0.5\)"),
        ({"size": (8, 8), "resize": (8, 8), "interpolation": "cubic"}, "bicubic.* got interpolation='cubic'"),
    ],
)  # fmt: skip
def test_settings_that_cannot_be_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        Preprocess(**settings)
