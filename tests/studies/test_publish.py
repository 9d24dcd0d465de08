import json
import shutil
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

import minivit
from studies.runner.pool import weights_of
from studies.runner.publish import publish
from studies.runner.run import Run
from studies.runner.storage import Store
from studies.runner.study import Study
from vitlab.training import Recipe

RUN = Run("resnet_8px", {"width": 8}, Recipe(epochs=2), data="DIGITS")
STUDY = Study("small", {"row": [RUN]}, lambda name, best: [best])


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("root"), command="python -m studies small")
    STUDY.carry_out(store)
    return store


@pytest.fixture
def store(finished, tmp_path):
    shutil.copytree(finished.root, tmp_path, dirs_exist_ok=True)
    return replace(finished, root=tmp_path)


def test_parameters_are_halved_statistics_are_not_and_the_card_gives_both_scores(store):
    scores = publish("small", "row", "digits_small", store)
    path = store.root / "minivit/checkpoints/digits_small.safetensors"
    for key, tensor in load_file(path).items():
        whole = torch.float32 if "running" in key else torch.float16
        assert tensor.dtype == (torch.int64 if "batches" in key else whole), key
    before = minivit.load(weights_of(RUN, store)).state_dict()
    after = minivit.load(path).state_dict()
    assert minivit.load(path).licence == "MIT"
    for key, tensor in after.items():
        assert tensor.dtype in (torch.float32, torch.int64)
        torch.testing.assert_close(tensor, before[key], rtol=5e-4, atol=1e-7)
    card = path.with_suffix(".md").read_text()
    for kind in ("float32", "half"):
        assert f"| test | {kind} | 359 | {scores[kind].accuracy:.4f} |" in card
    for text in ("# digits_small: ResNet trained on DIGITS", f"python -m studies small --recheck {RUN.key}",
                 "Licence of the weights: MIT", "CC BY 4.0", "seed 0", "test images, one seed"):  # fmt: skip
        assert text in card


def test_what_half_precision_breaks_or_a_name_that_is_taken_is_not_shipped(store):
    with pytest.raises(ValueError, match="that is not taken: got vit_8px"):
        publish("small", "row", "vit_8px", store)
    model = minivit.load(weights_of(RUN, store))
    model.head.weight.data *= 1e9  # beyond 65504
    minivit.save(model, weights_of(RUN, store))
    with pytest.raises(ValueError, match="NaN or infinity: head.weight"):
        publish("small", "row", "digits_small", store)
    model.head.weight.data *= 1e-9 * 1e-9  # below 6e-8
    model.head.bias.data *= 1e-9
    minivit.save(model, weights_of(RUN, store))
    with pytest.raises(ValueError, match="half precision takes the validation accuracy from"):
        publish("small", "row", "digits_small", store)
    assert list((store.root / "minivit/checkpoints").iterdir()) == []
    assert json.loads((store.root / "book/results/small.json").read_text())["rows"]
