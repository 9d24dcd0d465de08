"""Frozen parts, equal to the last bit afterwards, and hard distillation: chosen, told by the card, resumed."""

import copy
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import minivit
from tests.parity import close
from tests.vitlab.training.small import bright_or_dark, tiny
from tests.vitlab.training.test_loop import at_step as at_step
from tests.vitlab.training.test_loop import broken_off
from vitlab.training import Recipe, train
from vitlab.training.optimiser import freeze, frozen
from vitlab.training.run import Run

RECIPE = Recipe(steps=12, batch_size=12, learning_rate=1e-2)


@pytest.mark.parametrize(("name", "parts", "expected"), [
    ("vit_8px", "1", ["patch_embedding", "positions", "blocks.0"]),
    ("vit_8px", "backbone", ["patch_embedding", "positions", "blocks", "norm"]),
    ("vit_8px", "patch_embedding, blocks.[01]", ["patch_embedding", "blocks.0", "blocks.1"]),
    ("vit_8px", "blocks.*.attention.out", [f"blocks.{i}.attention.out" for i in range(4)]),
    ("resnet_8px", "1", ["stem", "blocks.0"]),
    ("pit_32px", "2", ["stem", "blocks.0", "blocks.1", "positions"]),
    ("hybrid_32px", "4", ["stem", "transitions", "blocks.0", "blocks.1", "blocks.2", "blocks.3", "positions"]),
])  # fmt: skip
def test_parts_are_chosen_by_name_or_counted_from_the_first_that_runs(name, parts, expected):
    model = minivit.create(name)
    freeze(model, parts)
    assert sorted(frozen(model)) == sorted(expected)
    assert model.training


def test_what_cannot_be_frozen_is_refused_and_the_model_is_as_it_was():
    model = minivit.create("vit_8px")
    for parts in "layers", "positions,blocks.4", "5", "0", "", "dropout", "backbone,head":
        part = parts.split(",")[-1]
        with pytest.raises(ValueError, match=f"norm, head, .* got '{part}' of '{parts}'"):
            freeze(model, parts)
        assert not frozen(model)


@pytest.mark.parametrize(
    ("name", "parts"), [("vit_8px", "1"), ("vit_8px", "*.norm1"), ("resnet_8px", "2")]
)
def test_frozen_parts_stay_equal_to_the_last_bit_statistics_of_norms_included(name, parts):
    torch.manual_seed(0)
    model = minivit.create(name, classes=2)
    before = copy.deepcopy(model.state_dict())
    freeze(model, parts)
    still = tuple(f"{part}." for part in frozen(model))
    train(model, bright_or_dark(), RECIPE)
    for key, tensor in model.state_dict().items():
        if tensor.is_floating_point():  # all but the counts of batches
            assert torch.equal(tensor, before[key]) == key.startswith(still), key
    assert tuple(f"{part}." for part in frozen(model)) == still


def test_a_training_with_frozen_parts_goes_on_with_the_same_alone(tmp_path, at_step):
    data = bright_or_dark()

    def fresh(parts="1"):
        model = tiny()
        if parts:
            freeze(model, parts)
        return model

    train(fresh(), data, RECIPE, out=tmp_path / "whole")
    broken_off(at_step, 3, tmp_path / "run", fresh(), RECIPE)
    for other in ("", "2"):
        with pytest.raises(ValueError, match=r"the model's frozen is \['patch_embedding', 'posit"):
            train(fresh(other), data, RECIPE, out=tmp_path / "run", resume=True)
    train(fresh(), data, RECIPE, out=tmp_path / "run", resume=True)
    files = [tmp_path / name / "model.safetensors" for name in ("whole", "run")]
    assert files[0].read_bytes() == files[1].read_bytes()
    card = (tmp_path / "run/card.md").read_text()
    assert "Frozen, as it was before: patch_embedding, positions, blocks.0." in card


TAUGHT = Recipe(steps=14, batch_size=12, learning_rate=5e-3, mixup=0.2, flip=True, shift=0.2)


@pytest.fixture
def teacher():
    torch.manual_seed(1)
    model = minivit.create("resnet_8px", classes=2, width=4)
    train(model, bright_or_dark(), Recipe(steps=30, batch_size=16, learning_rate=1e-2))
    return model


def test_the_loss_is_the_mean_of_both_and_the_teacher_sees_images_normalised_as_its_own(teacher):
    data = bright_or_dark()
    run = Run(tiny(), data, replace(TAUGHT, label_smoothing=0.0, mixup=0.0), teacher)
    images, targets = run._batch()
    with torch.no_grad():
        logits = run.model(images)
        on_labels = F.cross_entropy(logits, targets)
        on_decisions = F.cross_entropy(logits, teacher(images).argmax(1))
    loss, _ = run.advance()
    assert loss == pytest.approx(((on_labels + on_decisions) / 2).item(), rel=1e-5)
    data = replace(bright_or_dark(), mean=(0.1,), std=(0.5,))
    x = data.test.images.float() / 255
    ours, own = ((x - m) / s for m, s in ((0.1, 0.5), (0.5, 0.25)))
    decisions = Run(tiny(), data, TAUGHT, teacher)._decisions(ours)
    assert torch.equal(decisions, teacher(own).argmax(1)) and decisions.unique().numel() == 2


def test_the_teacher_stays_as_it_is_and_training_goes_on_with_it_alone(teacher, tmp_path):
    teacher.train()
    before = {name: tensor.clone() for name, tensor in teacher.state_dict().items()}
    data, whole = bright_or_dark(), tiny()
    train(whole, data, TAUGHT, teacher=teacher, out=tmp_path)
    assert teacher.training and all(p.requires_grad for p in teacher.parameters())
    assert all(torch.equal(before[k], v) for k, v in teacher.state_dict().items())
    teacher.eval()
    run, resumed = (Run(tiny(), data, TAUGHT, teacher) for _ in range(2))
    for _ in range(5):
        run.advance()
    resumed.load_state_dict(run.state_dict())
    while resumed.step < resumed.steps:
        resumed.advance()
    close([*whole.parameters()], [*resumed.average.model.parameters()], 0)
    with pytest.raises(ValueError, match="the model's teacher is '.*' there, None here"):
        train(tiny(), data, TAUGHT, out=tmp_path, resume=True)


def test_a_teacher_that_cannot_teach_is_refused_before_anything_is_written(tmp_path):
    for teacher, error, value in (
        (tiny(image_size=16), ValueError, r"teacher .*: got one for \(1, 16, 16, 2\)"),
        (tiny(), ValueError, "a teacher of .'dark', 'bright'.: got one of None"),
        (torch.nn.Linear(1, 1), TypeError, "minivit.model.Model or None as teacher: got Linear"),
    ):
        with pytest.raises(error, match=value):
            train(tiny(), bright_or_dark(), TAUGHT, out=tmp_path / "a", teacher=teacher)
    assert not (tmp_path / "a").exists()
