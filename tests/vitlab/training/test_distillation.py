"""Hard distillation: what the loss is, who decides on which images, what is refused and resumed."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

import minivit
from tests.vitlab.training.small import bright_or_dark, tiny
from vitlab.training import train
from vitlab.training.recipe import Recipe
from vitlab.training.run import Run

RECIPE = Recipe(steps=14, batch_size=12, learning_rate=5e-3, mixup=0.2, flip=True, shift=0.2)


@pytest.fixture
def teacher():
    torch.manual_seed(1)
    model = minivit.create("resnet_8px", classes=2, width=4)
    train(model, bright_or_dark(), Recipe(steps=30, batch_size=16, learning_rate=1e-2))
    return model


def test_the_loss_is_the_mean_of_both_and_the_teacher_sees_images_normalised_as_its_own(teacher):
    data = bright_or_dark()
    run = Run(tiny(), data, replace(RECIPE, label_smoothing=0.0, mixup=0.0), teacher)
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
    decisions = Run(tiny(), data, RECIPE, teacher)._decisions(ours)
    assert torch.equal(decisions, teacher(own).argmax(1)) and decisions.unique().numel() == 2


def test_the_teacher_stays_as_it_is_and_training_goes_on_with_it_alone(teacher, tmp_path):
    teacher.train()
    before = {name: tensor.clone() for name, tensor in teacher.state_dict().items()}
    data, whole = bright_or_dark(), tiny()
    train(whole, data, RECIPE, teacher=teacher, out=tmp_path)
    assert teacher.training and all(p.requires_grad for p in teacher.parameters())
    assert all(torch.equal(before[k], v) for k, v in teacher.state_dict().items())
    teacher.eval()
    run, resumed = (Run(tiny(), data, RECIPE, teacher) for _ in range(2))
    for _ in range(5):
        run.advance()
    resumed.load_state_dict(run.state_dict())
    while resumed.step < resumed.steps:
        resumed.advance()
    for a, b in zip(whole.parameters(), resumed.average.model.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(ValueError, match="the model's teacher is '.*' there, None here"):
        train(tiny(), data, RECIPE, out=tmp_path, resume=True)


def test_a_teacher_that_cannot_teach_is_refused_before_anything_is_written(tmp_path):
    for teacher, error, value in (
        (tiny(image_size=16), ValueError, r"teacher .*: got one for \(1, 16, 16, 2\)"),
        (tiny(), ValueError, "a teacher of .'dark', 'bright'.: got one of None"),
        (torch.nn.Linear(1, 1), TypeError, "minivit.model.Model or None as teacher: got Linear"),
    ):
        with pytest.raises(error, match=value):
            train(tiny(), bright_or_dark(), RECIPE, out=tmp_path / "a", teacher=teacher)
    assert not (tmp_path / "a").exists()
