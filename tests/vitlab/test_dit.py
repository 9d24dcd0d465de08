"""The diffusion transformer of digits: how it begins, what its loss asks, and what it draws."""

import pytest
import torch
from safetensors.torch import save_file

import minivit
from vitlab import dit


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_a_new_block_is_the_identity_and_its_gates_have_a_gradient():
    block, x, c = dit.DiTBlock(8, 2, 16), random(3, 5, 8), random(3, 8, seed=1)
    y = block(x, c)
    assert torch.equal(y, x)
    y.square().sum().backward()
    shift1, scale1, gate1, *_, gate2 = block.modulation.bias.grad.chunk(6)
    assert gate1.abs().min() > 0 and gate2.abs().min() > 0
    assert not shift1.any() and not scale1.any(), "closed gates let nothing through"


def test_the_loss_asks_for_the_way_from_noise_to_the_image():
    images, noise, labels = random(4, 1, 8, 8), random(4, 1, 8, 8, seed=1), torch.arange(4)
    given = []

    def knows(points, t, told):
        given.append((points, t, told))
        return images - noise

    assert dit.flow_loss(knows, images, labels, torch.Generator(), noise) == 0
    points, t, told = given[0]
    assert torch.allclose(points, torch.lerp(noise, images, t.view(-1, 1, 1, 1)))
    assert torch.equal(told, labels) and 0 <= t.min() < t.max() <= 1


def test_the_shipped_model_draws_what_is_asked_and_guidance_makes_drawings_alike():
    model, judge, labels = dit.load(), minivit.load("digits_vit"), torch.arange(50) % 10
    noise = random(50, 1, 8, 8)
    mean, std = judge.preprocess.mean[0], judge.preprocess.std[0]
    spread = []
    for scale in (1.0, 3.0):
        drawn = dit.draw(model, noise, labels, scale=scale).clamp(-1, 1)
        named = judge(((drawn + 1) / 2 - mean) / std).argmax(1)
        assert (named == labels).double().mean() >= 0.85
        spread.append(torch.stack([drawn[labels == k].var(0).mean() for k in range(10)]).mean())
    assert spread[1] < 0.8 * spread[0]
    two = dit.draw(model, noise, labels, steps=1)
    velocity = model(noise, torch.zeros(50), labels)
    assert torch.allclose(two, noise + velocity, atol=1e-6)


def test_weights_of_another_model_are_refused(monkeypatch, tmp_path):
    state = dit.DiT(dim=32).state_dict()
    save_file(state, tmp_path / "other.safetensors")
    monkeypatch.setattr(dit, "WEIGHTS", tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="of another shape"):
        dit.load()
