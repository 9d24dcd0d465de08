import torch

from vitlab.data import load_data
from vitlab.data.planted import plant_digits


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
    again = plant_digits(20)
    assert torch.equal(one.images, again.images)
    assert not torch.equal(one.images, plant_digits(20, seed=1).images)
