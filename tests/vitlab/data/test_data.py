import re

import numpy as np
import pytest
import torch
from PIL import Image

from tests.refusals import unchecked
from vitlab.data import Data, Split, load_data
from vitlab.data.dataset import statistics


def split(n=4, labels=None, channels=3, height=2, width=3):
    images = torch.arange(n * channels * height * width).reshape(n, channels, height, width) % 256
    return Split(
        images.to(torch.uint8), torch.tensor([0, 1] * (n // 2)) if labels is None else labels
    )


def test_the_statistics_are_those_of_the_training_images_scaled_to_one():
    images = torch.randint(0, 256, (7, 3, 5, 9), dtype=torch.uint8)
    mean, std = statistics(images)
    scaled = images.double() / 255
    torch.testing.assert_close(torch.tensor(mean, dtype=torch.float64), scaled.mean((0, 2, 3)))
    torch.testing.assert_close(
        torch.tensor(std, dtype=torch.float64), scaled.std((0, 2, 3), correction=0)
    )
    data = load_data("DIGITS")
    assert (data.mean, data.std) == statistics(data.train.images)
    few = load_data("DIGITS", fraction=0.1)
    assert (few.mean, few.std) == statistics(few.train.images) != (data.mean, data.std)


def test_digits_are_scikit_learns_with_values_stretched_to_a_byte():
    from sklearn.datasets import load_digits

    data = load_data("DIGITS")
    assert (data.name, data.classes) == ("DIGITS", tuple("0123456789"))
    images = torch.cat([data.train.images, data.validation.images, data.test.images])
    labels = torch.cat([data.train.labels, data.validation.labels, data.test.labels])
    ours = sorted(
        (label, *image.flatten().tolist())
        for label, image in zip(labels.tolist(), images, strict=True)
    )
    bunch = load_digits()
    stretched = np.round(bunch.data * 255 / 16).astype(int)
    assert ours == sorted(
        (label, *row) for label, row in zip(bunch.target.tolist(), stretched.tolist(), strict=True)
    )


def test_size_and_channels_are_as_asked_for():
    grey = load_data("DIGITS").test.images
    assert grey.shape[1:] == (1, 8, 8)
    colour = load_data("DIGITS", channels=3).test.images
    assert torch.equal(colour, grey.expand(-1, 3, -1, -1))
    large = load_data("DIGITS", size=(16, 24)).test.images
    assert large.shape[1:] == (1, 16, 24) and large.dtype == torch.uint8
    image = Image.fromarray(grey[0, 0].numpy()).resize((16, 16), Image.Resampling.BILINEAR)
    square = load_data("DIGITS", size=16).test.images
    assert (square[0, 0].int() - torch.from_numpy(np.array(image)).int()).abs().max() <= 1


def test_the_parts_are_the_same_for_every_seed_and_fraction():
    a, b = load_data("DIGITS"), load_data("DIGITS", seed=5, fraction=0.3)
    assert torch.equal(a.test.images, b.test.images)
    assert torch.equal(a.validation.images, b.validation.images)
    tenth, quarter = (load_data("DIGITS", fraction=f, seed=5).train.images for f in (0.1, 0.25))
    rows = {tuple(image.flatten().tolist()) for image in quarter}
    assert len(tenth) == 126 and {tuple(image.flatten().tolist()) for image in tenth} < rows


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"channels": 2}, "1 or 3 channels: got 2"),
        ({"fraction": 0}, "above 0 and at most 1: got 0"),
        ({"fraction": 1.5}, "above 0 and at most 1: got 1.5"),
        ({"size": 0}, "at least one pixel: got 0"),
        ({"size": (8, -1)}, "at least one pixel: got (8, -1)"),
        ({"size": 8.5}, "a size is a whole number, or two, height and width: got 8.5"),
    ],
)  # fmt: skip
def test_settings_out_of_range_are_refused(settings, said):
    with unchecked(), pytest.raises(ValueError, match=re.escape(said)):
        load_data("DIGITS", **settings)


def test_an_unknown_source_is_told_which_there_are(tmp_path):
    with pytest.raises(
        FileNotFoundError,
        match="expected DIGITS, CIFAR10, SHAPES or a folder: got CIFAR100, which does not exist",
    ):
        load_data("CIFAR100")
    (tmp_path / "cat.png").touch()
    with pytest.raises(FileNotFoundError, match="got .*cat.png, which is a file"):
        load_data(tmp_path / "cat.png")


@pytest.mark.parametrize(
    ("images", "labels", "said"),
    [
        (torch.zeros(2, 3, 4, 4), torch.zeros(2, dtype=torch.int64), "images uint8 [n, channels, height, width]: got torch.float32 [2, 3, 4, 4]"),
        (torch.zeros(2, 4, 4, dtype=torch.uint8), torch.zeros(2, dtype=torch.int64), "got torch.uint8 [2, 4, 4]"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(3, dtype=torch.int64), "labels int64 [2], one for each image: got torch.int64 [3]"),
        (torch.zeros(2, 3, 4, 4, dtype=torch.uint8), torch.zeros(2), "got torch.float32 [2]"),
    ],
)  # fmt: skip
def test_a_split_of_other_shapes_or_types_is_refused(images, labels, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        Split(images, labels)


BAD = {
    "empty part": ({"test": split(0, torch.zeros(0, dtype=torch.int64))}, "toy has no images in its test part"),
    "other sizes": ({"validation": split(height=3)}, "images of toy differ: [3, 2, 3] in train, [3, 3, 3] in validation"),
    "label too large": ({"test": split(labels=torch.tensor([0, 1, 2, 0]))}, "2 classes, so labels from 0 to 1: got 0 to 2 in test"),
    "label below zero": ({"train": split(labels=torch.tensor([0, 1, -1, 0]))}, "labels from 0 to 1: got -1 to 1 in train"),
    "class without images": ({"train": split(labels=torch.tensor([0, 0, 0, 0]))}, "toy has no training images of dog"),
    "flat": ({"train": Split(torch.full((4, 3, 2, 3), 7, dtype=torch.uint8), torch.tensor([0, 1, 0, 1]))}, "all of one value in a channel"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_parts_that_make_no_data_set_are_refused(case):
    changes, said = BAD[case]
    with pytest.raises(ValueError, match=re.escape(said)):
        Data.of(
            "toy",
            ("cat", "dog"),
            {"train": split(), "validation": split(), "test": split()} | changes,
        )
