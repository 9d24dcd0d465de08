"""Data sets and their parts, the same on every machine, and images from files."""

import hashlib

import numpy as np
import pytest
import torch
from PIL import Image

from tests.refusals import assert_refused
from vitlab.data import Data, Split, load_data
from vitlab.data.dataset import divide, statistics, thin
from vitlab.data.pictures import fitted, open_picture


def split(n=4, labels=(0, 1, 0, 1)):
    images = (torch.arange(n * 18) % 256).view(n, 3, 2, 3).to(torch.uint8)
    return Split(images, torch.tensor(labels[:n], dtype=torch.int64))


def test_the_statistics_are_those_of_the_training_images_scaled_to_one():
    images = torch.randint(0, 256, (7, 3, 5, 9), dtype=torch.uint8)
    mean, std = (torch.tensor(values, dtype=torch.float64) for values in statistics(images))
    scaled = images.double() / 255
    torch.testing.assert_close(mean, scaled.mean((0, 2, 3)))
    torch.testing.assert_close(std, scaled.std((0, 2, 3), correction=0))
    assert statistics(torch.full_like(images, 51)) == ((0.2,) * 3, (1.0,) * 3)
    data = load_data("DIGITS")
    assert (data.mean, data.std) == statistics(data.train.images)
    few = load_data("DIGITS", fraction=0.1)
    assert (few.mean, few.std) == statistics(few.train.images) != (data.mean, data.std)


def test_digits_are_scikit_learns_stretched_to_a_byte_in_the_size_and_channels_asked_for():
    from sklearn.datasets import load_digits

    data, bunch = load_data("DIGITS"), load_digits()
    assert (data.name, data.classes) == ("DIGITS", tuple("0123456789"))
    rows = [torch.cat([x.labels[:, None], x.images.flatten(1)], 1) for x in data.parts]
    stretched = np.round(bunch.data * 255 / 16).astype(int)
    theirs = np.concatenate([bunch.target[:, None], stretched], 1).tolist()
    assert sorted(torch.cat(rows).tolist()) == sorted(theirs)
    grey = load_data("DIGITS").test.images
    assert grey.shape[1:] == (1, 8, 8)
    assert torch.equal(load_data("DIGITS", channels=3).test.images, grey.expand(-1, 3, -1, -1))
    image = Image.fromarray(grey[0, 0].numpy()).resize((16, 16), Image.Resampling.BILINEAR)
    square = load_data("DIGITS", size=16).test.images
    assert (square[0, 0].int() - torch.from_numpy(np.array(image)).int()).abs().max() <= 1


def test_parts_are_the_same_for_every_seed_and_a_smaller_fraction_lies_inside_a_larger_one():
    a, b = load_data("DIGITS"), load_data("DIGITS", seed=5, fraction=0.3)
    assert torch.equal(a.test.images, b.test.images)
    assert torch.equal(a.validation.images, b.validation.images)
    labels = torch.arange(1000) % 10
    kept = {f: thin(labels, f, seed=3) for f in (0.001, 0.1, 0.25, 0.5, 1)}
    for small, large in zip(list(kept)[:-1], list(kept)[1:], strict=True):
        assert set(kept[small].tolist()) < set(kept[large].tolist())
    assert labels[kept[0.25]].bincount().tolist() == [25] * 10
    assert labels[kept[0.001]].bincount().tolist() == [1] * 10
    assert kept[1].tolist() == list(range(1000))
    both = set(kept[0.5].tolist()) & set(thin(labels, 0.5, seed=1).tolist())
    assert 200 < len(both) < 300  # another seed keeps others


def test_what_is_no_data_is_refused():
    pixels, labels = torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64)
    parts = dict.fromkeys(("train", "validation", "test"), split())

    def of(**changes):
        return lambda: Data.of("toy", ("cat", "dog"), parts | changes)

    assert_refused([
        (lambda: load_data("DIGITS", channels=2), ValueError, "got 2 and 1.0"),
        (lambda: load_data("DIGITS", fraction=1.5), ValueError, "got None and 1.5"),
        (lambda: load_data("DIGITS", size=(8, -1)), ValueError, "as size: got .8, -1"),
        (lambda: load_data("CIFAR100"), FileNotFoundError, "SHAPES or a folder: got CIFAR100"),
        (lambda: Split(pixels.float(), labels), ValueError, r"float32 \[2, 3, 4, 4\]"),
        (lambda: Split(pixels, labels[:1]), ValueError, r"int64 \[1\]"),
        (of(test=split(0)), ValueError, "part of toy: got none in test"),
        (of(train=split(labels=(0, 0, 0, 0))), ValueError, "got none in train of dog"),
    ])  # fmt: skip


KEYS = [f"café/{i}.png" for i in range(50)]
LABELS = torch.arange(50) % 3


def dealt(keys, labels=LABELS, classes="abc"):
    return list(divide(keys, labels, classes).values())


def checksum(*numbers):
    content = b"".join(n.numpy().astype("<i8").tobytes() for n in numbers)
    return hashlib.sha256(content).hexdigest()[:16]


def test_a_division_depends_on_the_keys_alone_and_gives_every_class_to_every_part():
    small = dealt(list("abc"), torch.zeros(3, dtype=torch.int64), ["a"])
    assert [len(part) for part in small] == [1, 1, 1]
    order, parts = torch.randperm(50), dealt(KEYS)
    shuffled = dealt([KEYS[i] for i in order], LABELS[order])
    for part, other in zip(parts, shuffled, strict=True):
        assert part.tolist() == order[other].sort().values.tolist()
    decomposed = dealt([key.replace("é", "e\u0301") for key in KEYS])
    assert all(map(torch.equal, parts, decomposed))


def test_a_division_is_the_same_on_every_machine():
    assert checksum(*dealt(KEYS)) == "1309278caef73fc4"
    splits = load_data("DIGITS").parts
    assert [len(split) for split in splits] == [1259, 179, 359]
    assert checksum(*(split.labels for split in splits)) == "92a5400c6630993e"
    assert checksum(*(split.images.sum((1, 2, 3)) for split in splits)) == "2a78be098eb61b22"
    tenth = load_data("DIGITS", fraction=0.1).train.images
    assert checksum(tenth.sum((1, 2, 3))) == "94409f5e094f57f9"


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
