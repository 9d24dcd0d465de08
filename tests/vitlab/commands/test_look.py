"""`minivit look`: a picture of attention."""

import numpy as np
import pytest
import torch
from PIL import Image

import minivit
from vitlab.commands import main
from vitlab.figures import heat, look


@pytest.fixture
def photo(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(noise).resize((80, 60)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


def test_a_picture_is_saved_with_class_and_probability(photo, tmp_path, capsys, monkeypatch):
    titles = []
    noted = lambda *a, **k: titles.append(k["title"]) or look(*a, **k)  # noqa: E731
    monkeypatch.setattr("vitlab.figures.look", noted)
    out = tmp_path / "seen.png"
    assert main(["look", str(photo), "--model", "cifar10_vit", "--out", str(out)]) == 0
    model = minivit.load("cifar10_vit")
    answer = model(model.preprocess(Image.open(photo))).softmax(1)[0]
    said = f"photo.png: {model.classes[answer.argmax()]}, {answer.max():.1%}, by cifar10_vit"
    assert titles == [said]
    assert capsys.readouterr().out == f"{said}\nwritten to {out}\n"
    assert min(Image.open(out).size) > 600


def test_the_panels_are_rollout_and_the_heads_of_the_block():
    from vitlab.instruments import rollout

    model = minivit.load("cifar10_vit")
    image = torch.randn(3, 32, 32)
    figure = look(model, image, block=2, title="a title")
    panels = {ax.get_title(): ax.images for ax in figure.axes if ax.images}
    assert list(panels)[0] == "the image" and len(panels) == 2 + 4
    with minivit.record(model, "blocks.2.attention.weights") as record:
        model(image[None])
    (weights,) = record.values()
    reads = weights[0].mean(1) if model.class_token is None else weights[0, :, 0, 1:]
    assert all(f"head {i}: {row.max():.2f}" in panels for i, row in enumerate(reads))
    carried = rollout(model, image[None]).patches[-1, 0]
    overlay = panels[f"rollout of all blocks: {carried.max():.2f}"][1].get_array()
    expected = heat(carried / carried.max(), (8, 8), (32, 32))
    np.testing.assert_allclose(overlay, expected, rtol=1e-4)
