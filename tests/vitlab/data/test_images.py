"""Photographs, planted digits and shapes that are drawn."""

import hashlib
import re
import socket

import pytest
import torch
import torch.nn.functional as F
from skimage import data

from vitlab.data import load_data
from vitlab.data.patterns import TEXTURES
from vitlab.data.photographs import PHOTOGRAPHS, crops, photograph
from vitlab.data.planted import plant_digits
from vitlab.data.shapes import CLASSES, draw_shapes


@pytest.mark.parametrize("name", PHOTOGRAPHS)
def test_a_photograph_is_what_scikit_image_gives_without_asking_the_network(name, monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    theirs = torch.from_numpy(getattr(data, name)())
    theirs = theirs.permute(2, 0, 1) if theirs.ndim == 3 else theirs.expand(3, -1, -1)
    assert torch.equal(photograph(name), theirs)
    assert PHOTOGRAPHS[name].startswith(("CC0", "public domain"))


def test_crops_come_from_the_photographs_they_name_and_depend_on_the_seed_alone():
    images, names = crops(60, (24, 16), seed=1, names=("chelsea", "grass"))
    assert images.shape == (60, 3, 24, 16) and images.dtype == torch.uint8
    grey = [image.unique(dim=0).shape[0] == 1 for image in images]
    assert set(names) == {"chelsea", "grass"}
    assert grey == [name == "grass" for name in names]
    assert torch.equal(crops(5)[0], crops(9)[0][:5])
    assert torch.equal(crops(5, seed=2)[0], crops(5, seed=2)[0])
    assert not torch.equal(crops(5, seed=2)[0], crops(5, seed=3)[0])
    with pytest.raises(ValueError, match="expected one of astronaut, chelsea, .*: got 'mona_lisa'"):
        photograph("mona_lisa")
    with pytest.raises(ValueError, match="301 pixels or more in chelsea: got 300 x 451"):
        crops(1, 301, names=("chelsea",))


def quarter(image, index):
    """One of the four 8 x 8 parts."""
    row, column = divmod(int(index), 2)
    return image[0, 8 * row : 8 * row + 8, 8 * column : 8 * column + 8]


def test_one_quarter_is_a_digit_of_the_class_whatever_surrounds_it():
    digits = load_data("DIGITS").test
    planted = plant_digits(40, part="test", seed=3)
    pixels = digits.images.flatten(1)
    for image, label, where in zip(planted.images, planted.labels, planted.quarters, strict=True):
        for index in range(4):
            part = quarter(image, index).flatten()
            same = (pixels == part).all(1)
            if index == where:
                assert same.any() and (digits.labels[same] == label).all()
            else:
                shuffled = (pixels.sort(1).values == part.sort().values).all(1)
                assert shuffled.any() and not same.any()
    assert planted.quarters.unique().tolist() == [0, 1, 2, 3]
    one, other = plant_digits(20), plant_digits(20, others=5)
    assert torch.equal(one.labels, other.labels) and torch.equal(one.quarters, other.quarters)
    for a, b, where in zip(one.images, other.images, one.quarters, strict=True):
        for index in range(4):
            assert torch.equal(quarter(a, index), quarter(b, index)) == (index == where)
    assert torch.equal(one.images, plant_digits(20).images)
    assert not torch.equal(one.images, plant_digits(20, seed=1).images)


def equal(a, b):
    return all(map(torch.equal, vars(a).values(), vars(b).values()))


def test_images_depend_on_their_seed_alone_and_a_larger_size_shows_the_same_finer():
    expected, state = draw_shapes(300, seed=4), torch.get_rng_state()
    assert equal(draw_shapes(300, seed=4), expected)
    assert torch.equal(torch.get_rng_state(), state)
    assert not torch.equal(draw_shapes(300, seed=5).images, expected.images)
    digest = hashlib.sha256(expected.masks.numpy().tobytes()).hexdigest()[:16]
    assert digest == "ac056b4bdba2cad0"  # the models and the chapters depend on them
    few = draw_shapes(260, seed=4)
    assert torch.equal(expected.images[:260], few.images)
    assert torch.equal(expected.masks[:260], few.masks)
    assert not torch.equal(expected.images[:50], expected.images[250:])
    small, large = draw_shapes(50, 32), draw_shapes(50, 96)
    assert torch.equal(small.labels, large.labels) and torch.equal(small.textures, large.textures)
    shrunk = F.interpolate(large.images.float(), 32, mode="area")
    pairs = zip(small.images.float().flatten(1), shrunk.flatten(1), strict=True)
    alike = torch.stack([torch.corrcoef(torch.stack(pair))[0, 1] for pair in pairs])
    unlike = torch.stack([small.images[0].float().flatten(), shrunk[1].flatten()])
    assert alike.quantile(0.1) > 0.8 > torch.corrcoef(unlike)[0, 1]


def test_a_mask_holds_the_label_plus_one_where_the_objects_texture_shows():
    drawn = draw_shapes(250)
    assert len(TEXTURES) == 10 and drawn.labels.bincount().tolist() == [25] * 10
    for mask, label in zip(drawn.masks, drawn.labels, strict=True):
        assert mask.unique().tolist() == [0, label + 1]
    # The same scenes with other textures: only the object changes, and nearly everywhere.
    a, b = draw_shapes(250, 64, typical=1.0), draw_shapes(250, 64, typical=0.0)
    assert torch.equal(a.masks, b.masks)
    changed = (a.images.int() - b.images.int()).abs().amax(1) > 0
    border = F.max_pool2d(a.masks.float(), 7, 1, 3)  # sharp tips cover less than half of a pixel
    assert changed[border == 0].float().mean() < 1e-5
    assert changed[a.masks > 0].float().mean() > 0.95


def test_typical_is_the_fraction_of_objects_with_the_texture_of_their_class():
    for typical in 0.3, 1.0:
        drawn = draw_shapes(2000, 16, typical=typical)
        fraction = (drawn.textures == drawn.labels).float().mean().item()
        assert fraction == pytest.approx(typical, abs=0.05 * (typical < 1))
    drawn = draw_shapes(5000, 16, typical=0.0)
    pairs = (drawn.labels * 10 + drawn.textures).bincount(minlength=100).view(10, 10)
    assert pairs.diagonal().sum() == 0
    assert pairs[~torch.eye(10, dtype=torch.bool)].min() > 25  # 56 on average
    a, b = draw_shapes(50, typical=0.7), draw_shapes(50, typical=0.2)
    same = a.textures == b.textures
    assert torch.equal(a.labels, b.labels) and 0 < same.sum() < 50
    assert torch.equal(a.images[same], b.images[same])  # the rest stays the same


def test_sizes_need_not_be_square_but_in_range():
    for size in (24, 40), (128, 20):
        drawn = draw_shapes(30, size)
        assert drawn.images.shape == (30, 3, *size) and drawn.masks.shape == (30, *size)
        assert drawn.masks.flatten(1).ne(0).any(1).all()
    for n, size in (0, 32), (5, 15), (5, (32, 129)):
        with pytest.raises(ValueError, match=re.escape(f"got {n} of {size}")):
            draw_shapes(n, size)


def test_the_data_set_of_shapes_has_three_parts_that_share_no_image():
    data = load_data("SHAPES", size=16, channels=1)
    assert (data.name, data.classes) == ("SHAPES", CLASSES)
    assert [x.images.shape for x in data.parts] == [(n, 1, 16, 16) for n in (8000, 1000, 2000)]
    assert len({image.numpy().tobytes() for split in data.parts for image in split.images}) == 11000
