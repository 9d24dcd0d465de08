"""The parts of the block of today are their formulas, and what the diffusion transformer draws."""

import pytest
import timm
import torch
from timm.layers import RotaryEmbeddingCat
from torch import nn

import minivit
import vitlab
from tests.foreign import timms
from tests.parity import draw, random
from vitlab import dit
from vitlab.convert.modern import ParallelBlock, RotaryAttention, Rotation, axial_angles


def test_axial_angles_are_timms_and_tokens_before_the_patches_are_not_turned():
    theirs = RotaryEmbeddingCat(16, in_pixels=False, temperature=100, feat_shape=(3, 5))
    sin, cos = theirs.get_embed().chunk(2, -1)
    angles = axial_angles((3, 5), 8)
    torch.testing.assert_close(angles.sin(), sin[:, ::2])
    torch.testing.assert_close(angles.cos(), cos[:, 1::2])
    rotation, x = Rotation(angles.cos(), angles.sin()), torch.randn(2, 1, 17, 16)
    assert torch.equal(rotation(x)[..., :2, :], x[..., :2, :])
    torch.testing.assert_close(rotation(x).norm(dim=-1), x.norm(dim=-1))
    with pytest.raises(ValueError, match="expected the 15 patches of its grid: got 14"):
        rotation(x[:, :, :14])


def test_normed_queries_and_keys_have_scores_of_at_most_the_root_of_their_size():
    attention = draw(RotaryAttention(24, 3, nn.Identity(), nn.RMSNorm).double())
    for norm in (attention.q_norm, attention.k_norm):
        nn.init.ones_(norm.weight)
    with minivit.record(attention, "scores") as seen:
        attention(100 * random(2, 5, 24))
    assert 1 < seen["scores"].abs().max() <= 8**0.5


def test_parallel_branches_read_the_same_tokens():
    block, x = draw(ParallelBlock(24, 3, 40).double()), random(2, 5, 24)
    y = block.norm1(x)
    torch.testing.assert_close(block(x), x + block.attention(y) + block.mlp(y))


def test_a_rotary_vit_is_not_saved_and_says_so_and_others_of_timms_eva_are_refused(tmp_path):
    model = vitlab.from_timm(timms("dinov3"))
    with pytest.raises(TypeError, match="expected a model of minivit's .*: got RotaryViT"):
        minivit.save(model, tmp_path / "model.safetensors")
    assert not list(tmp_path.iterdir())
    for changes, what in (
        ({"rope_type": "mixed", "rope_rotate_half": False}, "RotaryEmbeddingMixed in rope"),
        ({"use_rot_pos_emb": False, "use_abs_pos_emb": True}, "no rotary positions"),
        ({"qk_norm": True}, "norms or gates inside blocks.0.attn"),
        ({"use_post_norm": True}, "EvaBlockPostNorm in blocks.0"),
    ):
        with pytest.raises(ValueError, match=what):
            vitlab.from_timm(timms("dinov3", **changes))


def test_dinov3_by_its_name_has_timms_preprocessing_and_is_seen_by_instruments():
    theirs = timm.create_model("vit_small_patch16_dinov3", img_size=32, depth=2).eval()
    model = vitlab.from_timm(theirs)
    assert model.preprocess.size == (32, 32)
    with torch.no_grad(), minivit.record(model, "blocks.*.attention.weights") as seen:
        model(torch.randn(1, 3, 32, 32))
    assert seen["blocks.1.attention.weights"].shape == (1, 6, 9, 9)
    assert len(vitlab.attention_distance(model, torch.randn(2, 3, 32, 32)).pixels) == 2


def test_a_new_block_is_the_identity_and_its_gates_have_a_gradient():
    block, x, c = dit.DiTBlock(8, 2, 16), random(3, 5, 8).float(), random(3, 8, seed=1).float()
    y = block(x, c)
    assert torch.equal(y, x)
    y.square().sum().backward()
    shift1, scale1, gate1, *_, gate2 = block.modulation.bias.grad.chunk(6)
    assert gate1.abs().min() > 0 and gate2.abs().min() > 0
    assert not shift1.any() and not scale1.any(), "closed gates let nothing through"


def test_the_loss_asks_for_the_way_from_noise_to_the_image():
    images, noise = random(2, 4, 1, 8, 8).float()
    labels, given = torch.arange(4), []

    def knows(points, t, told):
        given.append((points, t, told))
        return images - noise

    assert dit.flow_loss(knows, images, labels, torch.Generator(), noise) == 0
    points, t, told = given[0]
    assert torch.allclose(points, torch.lerp(noise, images, t.view(-1, 1, 1, 1)))
    assert torch.equal(told, labels) and 0 <= t.min() < t.max() <= 1


def test_the_shipped_model_draws_what_is_asked_and_guidance_makes_drawings_alike():
    model, judge, labels = dit.load(), minivit.load("digits_vit"), torch.arange(50) % 10
    noise = random(50, 1, 8, 8).float()
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
