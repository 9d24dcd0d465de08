import os
import re
import shutil
import warnings

import numpy as np
import pytest
import torch
from PIL import Image

from minivit.preprocessing import Preprocess
from vitlab.data import folder as module
from vitlab.data import load_data
from vitlab.data.folder import folder


def picture(path, shade=None, size=(12, 10)):
    """An image of its own for each path, or of one shade."""
    path.parent.mkdir(parents=True, exist_ok=True)
    g = np.random.default_rng(list(str(path.name + path.parent.name).encode()))
    pixels = (
        g.integers(0, 256, (*size, 3), np.uint8)
        if shade is None
        else np.full((*size, 3), shade, np.uint8)
    )
    Image.fromarray(pixels).save(path)
    return path


@pytest.fixture
def root(tmp_path):
    for name, n in (("cat", 20), ("dog", 10)):
        for i in range(n):
            picture(tmp_path / "pets" / name / f"{i}.png")
    return tmp_path / "pets"


def names(data):
    """Which images each part holds: the pixels' sums tell them apart."""
    return [
        sorted(split.images.sum((1, 2, 3)).tolist())
        for split in (data.train, data.validation, data.test)
    ]


def test_a_folder_of_class_folders_is_dealt_to_three_parts(root):
    data = folder(root, 8)
    assert (data.name, data.classes, data.licence, data.skipped) == (
        "pets",
        ("cat", "dog"),
        None,
        (),
    )
    splits = (data.train, data.validation, data.test)
    assert [split.labels.bincount().tolist() for split in splits] == [[14, 7], [2, 1], [4, 2]]
    assert all(
        split.images.shape[1:] == (3, 8, 8) and split.images.dtype == torch.uint8
        for split in splits
    )


def test_images_and_labels_belong_together_and_are_prepared_as_a_model_would(root):
    data = load_data(root, size=(6, 8))
    prepare = Preprocess((6, 8), (6, 8))
    files = {
        prepare.fit(Image.open(path)).numpy().tobytes(): path.parent.name
        for path in root.rglob("*.png")
    }
    for split in (data.train, data.validation, data.test):
        for image, label in zip(split.images, split.labels, strict=True):
            assert files.pop(image.numpy().tobytes()) == data.classes[label]
    assert not files  # each once


def test_the_parts_do_not_depend_on_the_order_of_listing_or_on_where_the_folder_lies(
    root, tmp_path, monkeypatch
):
    before = names(folder(root, 8))
    iterdir = type(root).iterdir
    monkeypatch.setattr(type(root), "iterdir", lambda path: reversed(list(iterdir(path))))
    moved = root.rename(tmp_path / "moved")
    after = folder(moved, 8)
    assert (names(after), after.classes) == (before, ("cat", "dog"))


def test_a_damaged_image_does_not_change_the_part_of_the_others(root):
    before = names(folder(root, 8))
    damaged = root / "cat" / "7.png"
    gone = Preprocess((8, 8), (8, 8)).fit(Image.open(damaged)).sum().item()
    damaged.write_bytes(damaged.read_bytes()[:100])
    with pytest.warns(
        UserWarning, match=r"pets: damaged, so left out: 1 \(cat/7.png: OSError: .*truncated"
    ):
        data = folder(root, 8)
    assert names(data) == [[s for s in part if s != gone] for part in before]
    (reason,) = data.skipped
    assert reason.startswith("cat/7.png: OSError: ")


@pytest.mark.parametrize(
    "content",
    [b"", b"no image", b"\x89PNG\r\n\x1a\n" + bytes(50), b"\xff\xd8\xff\xe0" + bytes(50)],
)
def test_a_file_with_the_name_of_an_image_that_is_none_counts_as_damaged(root, content):
    (root / "dog" / "3.png").write_bytes(content)
    with pytest.warns(UserWarning, match="damaged, so left out: 1"):
        data = folder(root, 8)
    assert [reason.split(":")[0] for reason in data.skipped] == ["dog/3.png"]
    assert sum(map(len, (data.train, data.validation, data.test))) == 29


def test_files_that_are_no_images_are_counted_and_hidden_ones_passed_over(root):
    before = names(folder(root, 8))
    for name in (
        "notes.txt",
        "list.csv",
        "Thumbs.db",
        "no_suffix",
        ".DS_Store",
        "._1.png",
        ".hidden/0.png",
    ):
        path = root / "cat" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("no image")
    picture(root / ".git" / "0.png")
    (root / "labels.csv").touch()
    with pytest.warns(
        UserWarning,
        match=r"no images, so left out: 4 \(cat/Thumbs.db, cat/list.csv, cat/no_suffix, \.\.\.\)",
    ):
        data = folder(root, 8)
    assert names(data) == before and data.skipped == ()


def test_nested_files_belong_to_the_class_at_the_top(root):
    picture(root / "dog" / "2024" / "may" / "0.JPG")
    data = folder(root, 8)
    assert sum(split.labels.eq(1).sum() for split in (data.train, data.validation, data.test)) == 11


def test_a_link_that_leads_back_is_followed_once(root):
    (root / "cat" / "loop").symlink_to(root / "cat")
    (root / "dog" / "up").symlink_to(root / "dog", target_is_directory=True)
    (root / "dog" / "gone.png").symlink_to(root / "nowhere.png")
    with pytest.warns(
        UserWarning, match="damaged, so left out: 1 .dog/gone.png: FileNotFoundError"
    ):
        data = folder(root, 8)
    assert sum(map(len, (data.train, data.validation, data.test))) == 30


def test_a_link_to_a_folder_above_brings_no_images_of_other_classes(root):
    before = names(folder(root, 8))
    (root / "cat" / "up").symlink_to(root)
    (root / "dog" / "further").symlink_to(root.parent)
    assert names(folder(root, 8)) == before


def test_a_pipe_is_not_waited_for(root):
    before = names(folder(root, 8))
    os.mkfifo(root / "cat" / "pipe.png")
    assert names(folder(root, 8)) == before


def test_a_small_file_of_an_extreme_shape_counts_as_damaged(root):
    Image.new("1", (60_000, 1)).save(root / "cat" / "line.png")
    with pytest.warns(UserWarning, match="damaged, so left out: 1"):
        data = folder(root, 64)
    assert "cat/line.png: ValueError: expected at most 64 megapixels" in data.skipped[0]


def test_names_that_are_not_utf_8_are_read(root):
    picture(root / "cat" / "x.png").rename(root / "cat" / os.fsdecode(b"caf\xe9.png"))
    assert sum(map(len, (s := folder(root, 8)).train.labels.split(1))) > 0 and not s.skipped


@pytest.fixture
def divided(tmp_path):
    for part, n in (("train", 10), ("test", 2)):
        for name in ("a", "b"):
            for i in range(n):
                picture(tmp_path / "set" / part / name / f"{part}{i}.png")
    return tmp_path / "set"


def test_a_test_folder_is_the_test_part_and_validation_is_held_out_of_the_training_folder(divided):
    data = folder(divided, 8)
    splits = (data.train, data.validation, data.test)
    assert [split.labels.bincount().tolist() for split in splits] == [[9, 9], [1, 1], [2, 2]]
    prepare = Preprocess((8, 8), (8, 8))
    test = [
        prepare.fit(Image.open(path)).sum().item() for path in (divided / "test").rglob("*.png")
    ]
    assert names(data)[2] == sorted(test)


def test_three_folders_are_the_three_parts(divided):
    for name in ("a", "b"):
        picture(divided / "validation" / name / "v.png")
    data = folder(divided, 8)
    assert [len(split) for split in (data.train, data.validation, data.test)] == [20, 2, 4]


@pytest.mark.parametrize(
    ("train", "validation", "test"),
    [
        ("Train", "Val", "Test"),
        ("TRAINING", "valid", "testing"),
        ("training", "VALIDATION", "Testing"),
        ("train", "dev", "TEST"),
    ],
)
def test_parts_are_known_by_their_usual_names_in_capitals_too(divided, train, validation, test):
    for name in ("a", "b"):
        picture(divided / "validation" / name / "v.png")
    before = folder(divided, 8)
    (divided / "train").rename(divided / "x")  # for a file system that takes both for the same
    (divided / "x").rename(divided / train)
    (divided / "validation").rename(divided / "x")
    (divided / "x").rename(divided / validation)
    (divided / "test").rename(divided / "x")
    (divided / "x").rename(divided / test)
    after = folder(divided, 8)
    assert names(after) == names(before) and after.classes == before.classes == ("a", "b")


def test_classes_whose_names_have_that_of_a_part_in_them_are_classes(root):
    (root / "cat").rename(root / "bullet train")
    (root / "dog").rename(root / "Testudo")
    assert folder(root, 8).classes == ("Testudo", "bullet train")


def test_the_same_image_in_two_parts_is_warned_of(divided):
    source = divided / "train" / "a"
    Image.open(source / "train0.png").save(divided / "test" / "b" / "copy.bmp")
    Image.open(source / "train1.png").save(divided / "train" / "a" / "twin.bmp")  # no harm there
    with pytest.warns(
        UserWarning,
        match=r"among the training images: 1 \(test/b/copy.bmp = train/a/train0.png\)",
    ):
        folder(divided, 12)


def test_a_clean_folder_brings_no_warning(root):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        folder(root, 8)


def test_grey_and_fractions_of_a_folder(root):
    data = load_data(root, size=8, channels=1, fraction=0.5)
    assert data.train.images.shape == (11, 1, 8, 8)
    assert data.train.labels.bincount().tolist() == [7, 4]
    assert load_data(root).test.images.shape[1:] == (3, 64, 64)


def test_more_than_fits_is_refused_before_it_is_read(root, monkeypatch):
    monkeypatch.setattr(module, "open_picture", None)
    with pytest.raises(
        ValueError,
        match=r"30 images of 8000 x 8000 pixels take 5.76 GB of memory: expected at most 4 GB",
    ):
        folder(root, 8000)


def emptied(root):
    for path in root.rglob("*.png"):
        path.unlink()


def one_class(root):
    for path in (root / "dog").iterdir():
        path.unlink()
    (root / "dog").rmdir()


def few(root):
    for i in range(2, 10):
        (root / "dog" / f"{i}.png").unlink()


def loose(root):
    for path in root.rglob("*.png"):
        path.rename(root / f"{path.parent.name}{path.name}")
    for name in ("cat", "dog"):
        (root / name).rmdir()


def damaged_class(root):
    for path in (root / "dog").iterdir():
        path.write_bytes(b"")


BAD = {
    "empty class folders": (emptied, "at least 3 images of each class, one for each part that they are dealt to: got 0 of cat, 0 of dog"),
    "an empty class": (lambda root: (root / "newt").mkdir(), "got 0 of newt"),
    "one class": (one_class, "folders for two classes or more in {root}: got ['cat']"),
    "no classes": (loose, "folders for two classes or more in {root}: got none"),
    "too few": (few, "at least 3 images of each class, one for each part that they are dealt to: got 2 of dog"),
    "test without train": (lambda root: (root / "dog").rename(root / "test"), "a folder for each class, or train, and validation and test if there are any: got cat, test"),
    "other parts": (lambda root: ((root / "dog").rename(root / "train"), (root / "cat").rename(root / "vale")), "got train, vale"),
    "a class beside parts": (lambda root: ((root / "dog").rename(root / "Train"), (root / "val").mkdir()), "got Train, cat, val"),
    "parts with other names": (lambda root: ((root / "dog").rename(root / "seg_train"), (root / "cat").rename(root / "seg_test")), "got seg_test, seg_train. seg_test and seg_train seem to be parts: rename them"),
    "parts with numbers": (lambda root: ((root / "dog").rename(root / "Train2017"), (root / "cat").rename(root / "Val2017")), "Train2017 and Val2017 seem to be parts"),
    "parts in one word": (lambda root: ((root / "dog").rename(root / "trainingset"), (root / "cat").rename(root / "testset")), "testset and trainingset seem to be parts"),
    "one part twice": (lambda root: [(root / name).mkdir() or picture(root / name / "a" / "0.png") for name in ("Train", "val", "Valid")] and [shutil.rmtree(root / name) for name in ("cat", "dog")], "got Train, Valid, val, of which two are the same part"),
    "a class broken": (damaged_class, "has no images|has no training images of dog"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*damaged")
@pytest.mark.parametrize("case", BAD)
def test_a_folder_that_is_no_data_set_is_refused_with_the_reason(root, case):
    change, said = BAD[case]
    change(root)
    with pytest.raises(
        ValueError, match="|".join(re.escape(s.format(root=root)) for s in said.split("|"))
    ):
        folder(root, 8)


def test_a_class_that_the_training_folder_has_not_is_named(divided):
    picture(divided / "test" / "c" / "0.png")
    with pytest.raises(
        ValueError,
        match=re.escape(f"{divided / 'test'} has classes that train does not have: ['c']"),
    ):
        folder(divided, 8)


def test_a_folder_that_cannot_be_read_says_so(root, monkeypatch):
    if os.geteuid():
        (root / "cat").chmod(0)
    else:  # nothing is forbidden to root
        iterdir = type(root).iterdir

        def forbidden(path):
            if path.name == "cat":
                raise PermissionError(13, "Permission denied", str(path))
            return iterdir(path)

        monkeypatch.setattr(type(root), "iterdir", forbidden)
    with pytest.raises(PermissionError, match="Permission denied: .*cat"):
        folder(root, 8)
