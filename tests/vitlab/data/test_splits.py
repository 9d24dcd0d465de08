import hashlib

import pytest
import torch

from vitlab.data import load_data
from vitlab.data.dataset import divide, thin

KEYS = [f"café/{i}.png" for i in range(50)]
LABELS = torch.arange(50) % 3


def checksum(*numbers):
    content = b"".join(n.numpy().astype("<i8").tobytes() for n in numbers)
    return hashlib.sha256(content).hexdigest()[:16]


def test_every_image_goes_to_one_part_and_every_class_to_every_part():
    parts = divide(KEYS, LABELS, "abc", [0.1, 0.2])
    assert torch.cat(parts).sort().values.tolist() == list(range(50))
    counts = [LABELS[part].bincount().tolist() for part in parts]
    assert counts == [[12, 12, 11], [2, 2, 2], [3, 3, 3]]
    small = divide(list("abc"), torch.zeros(3, dtype=torch.int64), ["a"], [0.1, 0.2])
    assert [len(part) for part in small] == [1, 1, 1]


def test_a_division_is_the_same_on_every_machine():
    assert checksum(*divide(KEYS, LABELS, "abc", [0.1, 0.2])) == "1309278caef73fc4"
    digits = load_data("DIGITS")
    splits = (digits.train, digits.validation, digits.test)
    assert [len(split) for split in splits] == [1259, 179, 359]
    assert checksum(*(split.labels for split in splits)) == "92a5400c6630993e"
    assert checksum(*(split.images.sum((1, 2, 3)) for split in splits)) == "2a78be098eb61b22"
    tenth = load_data("DIGITS", fraction=0.1).train.images
    assert checksum(tenth.sum((1, 2, 3))) == "94409f5e094f57f9"


def test_a_division_depends_on_the_keys_and_not_on_their_order_or_the_code_of_an_accent():
    order, parts = torch.randperm(50), divide(KEYS, LABELS, "abc", [0.1, 0.2])
    shuffled = divide([KEYS[i] for i in order], LABELS[order], "abc", [0.1, 0.2])
    for part, other in zip(parts, shuffled, strict=True):
        assert part.tolist() == order[other].sort().values.tolist()
    decomposed = divide([key.replace("é", "e\u0301") for key in KEYS], LABELS, "abc", [0.1, 0.2])
    assert all(map(torch.equal, parts, decomposed))


def test_a_class_with_fewer_images_than_parts_is_named():
    labels = torch.tensor([0, 0, 0, 1, 1, 0])
    with pytest.raises(ValueError, match="at least 3 images .*: got 2 of cats, 0 of newts"):
        divide(list("abcdef"), labels, ["dogs", "cats", "newts"], [0.1, 0.2])


def test_a_smaller_fraction_lies_inside_a_larger_one_and_is_of_each_class_alike():
    labels = torch.arange(1000) % 10
    kept = {f: thin(labels, f, seed=3) for f in (0.001, 0.1, 0.25, 0.5, 1)}
    for small, large in zip(list(kept)[:-1], list(kept)[1:], strict=True):
        assert set(kept[small].tolist()) < set(kept[large].tolist())
    assert labels[kept[0.25]].bincount().tolist() == [25] * 10
    assert labels[kept[0.001]].bincount().tolist() == [1] * 10
    assert kept[1].tolist() == list(range(1000))
    both = set(kept[0.5].tolist()) & set(thin(labels, 0.5, seed=1).tolist())
    assert 200 < len(both) < 300  # another seed keeps others
