import os
import shutil
import warnings

import numpy as np
import pytest
from PIL import Image

from minivit.preprocessing import Preprocess
from vitlab.data import folder as module
from vitlab.data import load_data
from vitlab.data.folder import folder


def picture(path):
    """An image of its own for each path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    g = np.random.default_rng(list(str(path.name + path.parent.name).encode()))
    Image.fromarray(g.integers(0, 256, (12, 10, 3), np.uint8)).save(path)


@pytest.fixture
def root(tmp_path):
    for name, n in (("cat", 20), ("dog", 10)):
        for i in range(n):
            picture(tmp_path / "pets" / name / f"{i}.png")
    return tmp_path / "pets"


@pytest.fixture
def divided(tmp_path):
    for part, n in (("train", 10), ("test", 2)):
        for name in ("a", "b"):
            for i in range(n):
                picture(tmp_path / "set" / part / name / f"{part}{i}.png")
    return tmp_path / "set"


def sums(data):
    """Which images each part holds: the pixels' sums tell them apart."""
    return [sorted(part.images.sum((1, 2, 3)).tolist()) for part in data.parts]


def prepared(path, size=(8, 8)):
    return Preprocess(size, size).fit(Image.open(path))


def test_images_go_to_three_parts_with_their_labels_prepared_as_a_model_would(root):
    data = load_data(root, size=(6, 8))
    about = (data.name, data.classes, data.licence, data.skipped)
    assert about == ("pets", ("cat", "dog"), None, ())
    assert [part.labels.bincount().tolist() for part in data.parts] == [[14, 7], [2, 1], [4, 2]]
    files = {prepared(p, (6, 8)).numpy().tobytes(): p.parent.name for p in root.rglob("*.png")}
    for part in data.parts:
        for image, label in zip(part.images, part.labels, strict=True):
            assert files.pop(image.numpy().tobytes()) == data.classes[label]
    assert not files  # each once
    data = load_data(root, size=8, channels=1, fraction=0.5)
    assert data.train.images.shape == (11, 1, 8, 8)
    assert data.train.labels.bincount().tolist() == [7, 4]
    assert load_data(root).test.images.shape[1:] == (3, 64, 64)
    renamed(root, "bullet train", "Testudo")  # no names of parts
    assert folder(root, 8).classes == ("Testudo", "bullet train")


def test_the_parts_do_not_depend_on_the_order_of_listing_or_the_place(root, tmp_path, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a clean folder brings none
        before = sums(folder(root, 8))
    iterdir = type(root).iterdir
    monkeypatch.setattr(type(root), "iterdir", lambda path: reversed(list(iterdir(path))))
    after = folder(root.rename(tmp_path / "moved"), 8)
    assert (sums(after), after.classes) == (before, ("cat", "dog"))


CONTENTS = [b"", b"no image", b"\x89PNG\r\n\x1a\n" + bytes(50), b"\xff\xd8\xff\xe0" + bytes(50)]


@pytest.mark.parametrize("content", [None, *CONTENTS])
def test_a_damaged_image_is_left_out_and_does_not_change_the_part_of_the_others(root, content):
    before, damaged = sums(folder(root, 8)), root / "cat" / "7.png"
    gone = prepared(damaged).sum().item()
    damaged.write_bytes(damaged.read_bytes()[:100] if content is None else content)
    with pytest.warns(UserWarning, match=r"pets: damaged, so left out: 1 \(cat/7.png: "):
        data = folder(root, 8)
    assert sums(data) == [[s for s in part if s != gone] for part in before]
    assert [reason.split(":")[0] for reason in data.skipped] == ["cat/7.png"]


def test_files_that_are_no_images_are_counted_and_hidden_ones_passed_over(root):
    """pytorch/vision#2831, fastai#200."""
    before = sums(folder(root, 8))
    hidden = (".DS_Store", "._1.png", ".hidden/0.png", "@eaDir/0.png/SYNOPHOTO_THUMB_M.jpg")
    for name in ("notes.txt", "list.csv", "Thumbs.db", "no_suffix", *hidden):
        path = root / "cat" / name
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text("no image")
    for folder_ in ".git", "__MACOSX":
        picture(root / folder_ / "0.png")
    (root / "labels.csv").touch()
    said = r"no images, so left out: 4 \(cat/Thumbs.db, cat/list.csv, cat/no_suffix, \.\.\.\)"
    passed = r"so passed over: 4 \(\.git, __MACOSX, cat/\.hidden, \.\.\.\)"
    with pytest.warns(UserWarning, match=said), pytest.warns(UserWarning, match=passed):
        data = folder(root, 8)
    assert sums(data) == before and data.skipped == ()


def test_odd_names_nested_folders_links_and_pipes(root):
    before = sums(folder(root, 8))
    for link, target in (("cat/loop", "cat"), ("cat/up", "."), ("dog/further", "..")):
        (root / link).symlink_to(root / target, target_is_directory=True)
    os.mkfifo(root / "cat" / "pipe.png")  # is not waited for
    assert sums(folder(root, 8)) == before
    picture(root / "dog" / "2024" / "may" / "0.JPG")
    picture(root / "cat" / "x.png")
    (root / "cat" / "x.png").rename(root / "cat" / os.fsdecode(b"caf\xe9.png"))
    (root / "dog" / "gone.png").symlink_to(root / "nowhere.png")
    Image.new("1", (60_000, 1)).save(root / "cat" / "line.png")
    with pytest.warns(UserWarning, match="damaged, so left out: 2"):
        data = folder(root, 64)
    assert sum(part.labels.bincount() for part in data.parts).tolist() == [21, 11]
    reasons = dict(reason.split(": ", 1) for reason in data.skipped)
    assert reasons["dog/gone.png"].startswith("FileNotFoundError")
    assert "at most 64 megapixels" in reasons["cat/line.png"]


def test_folders_with_the_names_of_parts_are_the_parts(divided):
    data = folder(divided, 8)  # validation is held out of the training folder
    assert [p.labels.bincount().tolist() for p in data.parts] == [[9, 9], [1, 1], [2, 2]]
    test = [prepared(path).sum().item() for path in (divided / "test").rglob("*.png")]
    assert sums(data)[2] == sorted(test)
    for name in ("a", "b"):
        picture(divided / "validation" / name / "v.png")
    before = folder(divided, 8)
    assert [len(part) for part in before.parts] == [20, 2, 4]
    names = ["train", "validation", "test"]
    for others in (["Train", "Val", "Test"], ["TRAINING", "valid", "testing"], ["x", "dev", "y"]):
        others = [new if len(new) > 1 else old for new, old in zip(others, names, strict=True)]
        for old, new in zip(names, others, strict=True):
            (divided / old).rename(divided / "z")  # some file systems take both for the same
            (divided / "z").rename(divided / new)
        names = others
        assert sums(folder(divided, 8)) == sums(before)


def test_an_image_in_two_parts_is_warned_of_and_a_class_without_training_refused(divided):
    """tqwei05/PlantSeg#11, RIAWELC#2."""
    source = divided / "train" / "a"
    Image.open(source / "train0.png").save(divided / "test" / "b" / "copy.bmp")
    Image.open(source / "train1.png").save(divided / "train" / "a" / "twin.bmp")  # no harm there
    said = r"among the training images: 1 \(test/b/copy.bmp = train/a/train0.png\)"
    with pytest.warns(UserWarning, match=said):
        folder(divided, 12)
    picture(divided / "test" / "c" / "0.png")
    with pytest.raises(ValueError, match=r"train does not have, \['c'\]"):
        folder(divided, 8)


def renamed(root, cat, dog):
    (root / "cat").rename(root / cat)
    (root / "dog").rename(root / dog)


def twice(root):
    for name in ("Train", "val", "Valid"):
        picture(root / name / "a" / "0.png")
        picture(root / name / "b" / "0.png")
    shutil.rmtree(root / "cat")
    shutil.rmtree(root / "dog")


BAD = {
    "an empty class": (lambda root: (root / "newt").mkdir(), "3 images of each class.*got 0 of newt"),
    "too few": (lambda root: [(root / "dog" / f"{i}.png").unlink() for i in range(2, 10)], "3 images of each class.*: got 2 of dog"),
    "one class": (lambda root: shutil.rmtree(root / "dog"), "two classes or more.*: got cat$"),
    "test without train": (lambda root: renamed(root, "cat", "test"), "with such: got cat, test$"),
    "other parts": (lambda root: renamed(root, "vale", "train"), "two classes or more, or train.*: got train, vale"),
    "a class beside parts": (lambda root: (renamed(root, "cow", "Train"), (root / "val").mkdir()), "with such: got Train, cow, val"),
    "one part twice": (twice, "with such: got Train, Valid, val"),
    "a class broken": (lambda root: [path.write_bytes(b"") for path in (root / "dog").iterdir()], "expected images in every part of pets: got none in"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*damaged")
@pytest.mark.parametrize("case", BAD)
def test_a_folder_that_is_no_data_set_is_refused_with_the_reason(root, case):
    """Such as a class of one image: v7labs/darwin-py#406."""
    change, said = BAD[case]
    change(root)
    with pytest.raises(ValueError, match=said):
        folder(root, 8)


def test_a_folder_that_cannot_be_read_or_held_says_so_before_it_is_read(root, monkeypatch):
    iterdir = type(root).iterdir

    def forbidden(path):
        if path.name == "cat":
            raise PermissionError(13, "Permission denied", str(path))
        return iterdir(path)

    with monkeypatch.context() as patch:
        patch.setattr(type(root), "iterdir", forbidden)  # nothing is forbidden to root
        with pytest.raises(PermissionError, match="Permission denied: .*cat"):
            folder(root, 8)
    monkeypatch.setattr(module, "open_picture", None)
    with pytest.raises(ValueError, match="at most 4 GB of memory: got 30 of 8000 x 8000 pixels"):
        folder(root, 8000)
