"""Files that were damaged, or made to do harm: one clear error each, soon, and never other numbers."""

import json
import random
import time

import pytest
import safetensors.torch
import torch

from minivit import Preprocess, create, load
from minivit.files import read, save
from tests.refusals import unchecked


@pytest.fixture
def saved(tmp_path_factory):
    """A model, and the bytes of its file."""
    model = create("vit_8px", dim=8, heads=2, depth=2, classes=3)
    for tensor in model.state_dict().values():
        tensor.normal_(generator=torch.Generator().manual_seed(0))
    model.classes, model.licence = ["cat", "dog", "Übersee"], "CC BY 4.0"
    model.preprocess = Preprocess(8, 8, mean=(0.5,), std=(0.25,))
    path = tmp_path_factory.mktemp("saved") / "model.safetensors"
    save(model, path)
    return model, path.read_bytes()


def is_as_it_was(path, model):
    state, about = read(path)
    same = all(torch.equal(state[key], tensor) for key, tensor in model.state_dict().items())
    return same and (about.preprocess, about.classes, about.licence, about.config.dim) == (
        model.preprocess, model.classes, model.licence, 8
    )  # fmt: skip


def test_a_flipped_bit_anywhere_in_a_file_is_refused(tmp_path, saved):
    model, content = saved
    path, g = tmp_path / "model.safetensors", random.Random(0)
    header = 8 + int.from_bytes(content[:8], "little")
    places = [*range(16, 60), *(g.randrange(header) for _ in range(150))]
    places += [g.randrange(header, len(content)) for _ in range(150)]
    for place in places:
        damaged = bytearray(content)
        damaged[place] ^= 1 << g.randrange(8)
        path.write_bytes(damaged)
        try:
            assert is_as_it_was(path, model), (place, content[place - 20 : place + 20])
        except ValueError as error:
            assert f"expected a whole checkpoint, of tensors alone, at {path}" in str(error)


def rewritten(path, content, **changes):
    """Writes a file without a checksum, as before there was one, and with other fields; none is left out."""
    path.write_bytes(content)
    with safetensors.safe_open(path, "pt") as file:
        about = json.loads(file.metadata()["minivit"])
        state = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    del about["sha256"]
    for key, value in changes.items():
        *above, field = key.split("__")
        (about[above[0]] if above else about)[field] = value
    about = {field: value for field, value in about.items() if value is not None}
    safetensors.torch.save_file(state, path, {"minivit": json.dumps(about)})


def test_a_file_from_before_there_were_checksums_or_families_loads(tmp_path, saved):
    path = tmp_path / "model.safetensors"
    rewritten(path, saved[1], family=None)
    assert b"sha256" not in path.read_bytes() and is_as_it_was(path, saved[0])
    images = torch.rand(2, 1, 8, 8)
    assert torch.equal(load(path)(images), saved[0].eval()(images))


def test_a_flipped_bit_in_what_torch_saved_is_refused_where_it_saved_checksums(tmp_path, saved):
    state, path = saved[0].state_dict(), tmp_path / "model.pth"
    torch.save(state, path)
    content = path.read_bytes()
    place = content.index(state["head.weight"].numpy().tobytes()) + 2
    path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
    with pytest.raises(ValueError, match="at .*model.pth.*the checksum of .* is not that of its"):
        read(path)
    torch.serialization.set_crc32_options(False)
    try:
        torch.save(state, path)
    finally:
        torch.serialization.set_crc32_options(True)
    assert all(torch.equal(read(path)[0][key], tensor) for key, tensor in state.items())


SAID = {
    "names that are none": ({"classes": [None, "b", "c"]}, "None"),
    "a name of letters": ({"classes": "abc"}, "'abc'"),
    "an unknown part": ({"colour": 1}, "colour"),
    "a family of numbers": ({"family": ["ViT"]}, "got unhashable"),
    "a family that there is not": ({"family": "Mamba"}, "got 'Mamba'"),
    "too few names": ({"classes": ["a"]}, "1 classes are named for 3"),
    "another family": ({"family": "ResNet"}, "patch_size"),
    "a configuration of another kind": ({"config": [1]}, "mapping, not tuple"),
    "an unknown field": ({"config__colour": 1}, "colour"),
    "a ratio beyond all": ({"config__mlp_ratio": 1e308}, "cannot convert float inf"),
    "preparation without a size": ({"preprocess": {}}, "missing .*size"),
    "a mean beyond all": ({"preprocess__mean": [float("inf")]}, "inf"),
    "images beyond all": ({"config__image_size": [10**30, 10**30]}, "Overflow|fit the model"),
    "blocks beyond all": ({"config__depth": 10**5}, "100000 blocks, and holds 2"),
    "blocks without a part beyond all": ({"config__depth": 10**9, "removed": [["mlp", None], ["attention", None]]}, "and holds 2"),
}  # fmt: skip


@pytest.mark.parametrize("case", SAID)
def test_what_a_file_says_of_itself_is_looked_at_before_it_is_believed(tmp_path, saved, case):
    changes, said = SAID[case]
    path = tmp_path / "model.safetensors"
    rewritten(path, saved[1], **changes)
    before = time.monotonic()
    with unchecked(), pytest.raises(ValueError, match=said) as caught:
        load(path)
    assert str(path) in str(caught.value)
    assert time.monotonic() - before < 5


def test_stages_beyond_all_are_not_built_either(tmp_path):
    path = tmp_path / "model.safetensors"
    for name, stages in ("resnet_8px", [1, 1, 10**9]), ("alternet_32px", ["c", "ca", "a" * 10**5]):
        save(create(name), path)
        rewritten(path, path.read_bytes(), config__stages=stages)
        with pytest.raises(ValueError, match="blocks, and holds [36]"):
            load(path)


def test_the_folder_of_a_training_is_as_good_as_the_model_in_it(tmp_path, saved, monkeypatch):
    runs = tmp_path / "runs"
    runs.mkdir()
    with pytest.raises(FileNotFoundError, match="a file at .*runs/model.safetensors: got none"):
        load(runs)
    (runs / "model.safetensors").write_bytes(saved[1])
    assert load(runs).classes == saved[0].classes
    (tmp_path / "digits_vit").mkdir()  # a name is a name, whatever lies in the working directory
    monkeypatch.chdir(tmp_path)
    assert load("vit_8px", runs / "model.safetensors", dim=8, heads=2, depth=2, classes=3)
    assert load("digits_vit").classes == list("0123456789")
