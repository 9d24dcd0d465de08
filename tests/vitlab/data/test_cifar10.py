"""CIFAR-10 in its published forms, smaller, with random pixels in place of its images."""

import hashlib
import pickle

import numpy as np
import pytest
import torch
import torchvision

from vitlab.data import load_data
from vitlab.data.loading import CIFAR10

BATCH = 200  # images in a file, in place of 10,000
FILES = [*(f"data_batch_{i}" for i in range(1, 6)), "test_batch"]


@pytest.fixture(scope="module")
def batches():
    """What is in each file: labels ``[BATCH]`` and pixels ``[BATCH, 3072]``."""
    g, labels = np.random.default_rng(0), np.arange(BATCH) % 10
    return {name: (labels, g.integers(0, 256, (BATCH, 3072), np.uint8)) for name in FILES}


@pytest.fixture
def pickled(batches, tmp_path, monkeypatch):
    folder, sums = tmp_path / "cifar-10-batches-py", {}
    folder.mkdir()
    contents = {name: {"data": x, "labels": y.tolist()} for name, (y, x) in batches.items()}
    for name, content in (contents | {"batches.meta": {"label_names": list(CIFAR10)}}).items():
        data = pickle.dumps(content)
        (folder / name).write_bytes(data)
        sums[name] = hashlib.md5(data).hexdigest()
    known = torchvision.datasets.CIFAR10
    monkeypatch.setattr(known, "train_list", [[name, sums[name]] for name in FILES[:5]])
    monkeypatch.setattr(known, "test_list", [["test_batch", sums["test_batch"]]])
    monkeypatch.setattr(known, "meta", known.meta | {"md5": sums["batches.meta"]})
    return folder


@pytest.fixture(autouse=True)
def undisturbed(monkeypatch):
    monkeypatch.delenv("MINIVIT_CIFAR10", raising=False)
    monkeypatch.delenv("MINIVIT_DOWNLOAD", raising=False)


def checked(data, batches):
    assert (data.name, data.classes, data.licence) == ("CIFAR10", CIFAR10, None)
    counts = [split.labels.bincount().tolist() for split in data.parts]
    assert counts == [[90] * 10, [10] * 10, [20] * 10]
    labels, pixels = batches["test_batch"]
    assert torch.equal(data.test.images.flatten(1), torch.from_numpy(pixels))
    assert torch.equal(data.test.labels, torch.from_numpy(labels))
    pairs = [pair for name in FILES[:5] for pair in zip(*batches[name], strict=True)]
    published = {row.tobytes(): label for label, row in pairs}
    for split in data.parts[:2]:
        for image, label in zip(split.images, split.labels, strict=True):
            assert published.pop(image.numpy().tobytes()) == label
    assert not published  # every image is in one part
    return hashlib.sha256(data.validation.images.numpy().tobytes()).hexdigest()[:16]


def test_the_release_is_read_from_its_folder_or_the_one_around_it(pickled, batches, monkeypatch):
    parts = set()
    for path in pickled, pickled.parent:
        monkeypatch.setenv("MINIVIT_CIFAR10", str(path))
        parts.add(checked(load_data("CIFAR10", seed=len(parts)), batches))
    assert len(parts) == 1


def test_a_download_goes_to_the_cache_of_torch_hub(pickled, batches, tmp_path, monkeypatch):
    monkeypatch.setenv("MINIVIT_DOWNLOAD", "1")
    monkeypatch.setattr(torch.hub, "get_dir", lambda: str(tmp_path / "hub"))

    def fetch(self):  # as torchvision's, which needs a network
        (tmp_path / "hub" / "datasets").mkdir(parents=True, exist_ok=True)
        if pickled.exists():
            pickled.rename(tmp_path / "hub" / "datasets" / pickled.name)

    monkeypatch.setattr(torchvision.datasets.CIFAR10, "download", fetch)
    checked(load_data("CIFAR10"), batches)


def test_a_copy_that_is_none_or_not_whole_is_named(pickled, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="MINIVIT_CIFAR10=path, or MINIVIT_DOWNLOAD=1"):
        load_data("CIFAR10")
    with (pickled / "data_batch_3").open("r+b") as file:
        file.truncate(1000)
    for path in tmp_path / "nowhere", pickled:
        monkeypatch.setenv("MINIVIT_CIFAR10", str(path))
        with pytest.raises(FileNotFoundError, match=f"no whole copy of CIFAR-10 in .*{path.name}"):
            load_data("CIFAR10")
