"""What switching parts off changes, against models in which they are taken out by hand."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import minivit
from tests.parity import draw
from tests.vitlab.instruments.models import DIM, HEADS, MODELS, everybodys, images
from vitlab.instruments import branch_importance, head_importance

LABELS = torch.tensor([1, 4])


def without_head(model, attention, head):
    """Every library's map behind the heads reads them side by side: its columns are zeroed."""
    part = model.get_submodule(attention)
    maps = [m for m in part.modules() if isinstance(m, nn.Linear)]
    last = [m for m in maps if m.weight.shape == (DIM, DIM)][-1]
    width = DIM // HEADS
    last.weight.data[:, head * width : (head + 1) * width] = 0


def scores(model, pictures, labels):
    output = model(pictures)
    output = getattr(output, "logits", output)
    accuracy = (output.argmax(1) == labels).double().mean().item()
    return F.cross_entropy(output, labels).item(), accuracy


@pytest.mark.parametrize("name", MODELS)
def test_a_head_that_is_off_is_one_whose_columns_of_the_output_map_are_zero(name):
    _, block, attention, _ = MODELS[name]
    model, pictures, _ = everybodys(name)
    found = head_importance(model, pictures, LABELS)
    assert found.loss.shape == found.accuracy.shape == (2, HEADS)
    assert found.names == tuple(block.format(i) for i in range(2))
    whole = scores(model, pictures, LABELS)
    assert (found.whole_loss, found.whole_accuracy) == pytest.approx(whole)
    for i in range(2):
        for head in range(HEADS):
            other, _, _ = everybodys(name)
            without_head(other, f"{block.format(i)}.{attention}", head)
            loss, accuracy = scores(other, pictures, LABELS)
            assert found.loss[i, head].item() == pytest.approx(loss, rel=1e-5)
            assert found.accuracy[i, head] == accuracy
            assert abs(loss - whole[0]) > 1e-4


@pytest.mark.parametrize("name", ["vit_8px", "mixer_8px"])
def test_a_branch_that_is_off_is_one_that_surgery_removes(name):
    model, x = draw(minivit.create(name, depth=3)).eval(), torch.rand(4, 1, 8, 8)
    labels = torch.arange(4)
    found = branch_importance(model, x, labels)
    mixing = "attention" if name == "vit_8px" else "mixing"
    assert found.names == tuple(f"blocks.{i}.{part}" for i in range(3) for part in (mixing, "mlp"))
    for name, loss, accuracy in zip(found.names, found.loss, found.accuracy, strict=True):
        _, block, part = name.split(".")
        known = scores(minivit.remove(model, part, [int(block)]), x, labels)
        assert (loss.item(), accuracy.item()) == pytest.approx(known, rel=1e-5)


def test_without_labels_the_class_is_what_the_whole_model_answers():
    model, pictures, _ = everybodys("minivit class")
    answers = model(pictures).argmax(1)
    found, same = branch_importance(model, pictures), branch_importance(model, pictures, answers)
    assert found.whole_accuracy == 1
    assert torch.equal(found.loss, same.loss) and torch.equal(found.accuracy, same.accuracy)


def test_blocks_with_fewer_heads_have_nan_behind_them():
    model = draw(minivit.create("pit_32px", stages=("t", "t", "t")))
    found = head_importance(model, images(1, (32, 32)))
    heads = torch.tensor([3, 6, 12])[:, None]
    assert torch.equal(found.loss.isnan(), torch.arange(12) >= heads)


def test_attention_that_folds_heads_into_images_has_no_heads_to_switch_off():
    class Folded(nn.Module):
        def forward(self, x):
            return nn.functional.scaled_dot_product_attention(x, x, x)

    model = nn.Sequential(nn.Conv2d(3, 8, 8, 8), nn.Flatten(2), Folded(), nn.Flatten())
    with pytest.raises(ValueError, match=r"keys\]: got \[1, 8, 8\] in '2'"):
        head_importance(model, torch.randn(2, 3, 24, 32))


class NormBehind(nn.Module):
    """An MLP with its norm behind it, inside the residual connection, as in Swin v2."""

    def __init__(self):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))
        self.norm, self.off = nn.LayerNorm(DIM), False

    def forward(self, x):
        return x if self.off else x + self.norm(self.mlp(x))


def test_a_branch_with_a_norm_behind_it_leaves_the_skip_alone():
    blocks = nn.Sequential(NormBehind(), NormBehind())
    model = draw(nn.Sequential(nn.Flatten(), nn.Linear(3 * 4 * 4, DIM), blocks, nn.Linear(DIM, 5)))
    pictures = torch.randn(2, 3, 4, 4, generator=torch.Generator().manual_seed(0))
    found = branch_importance(model.eval(), pictures, LABELS)
    assert found.names == ("2.0.mlp", "2.1.mlp")  # the norm is no name for it
    with torch.no_grad():
        assert blocks[0].norm.bias.abs().max() > 0.1  # what the norm gives for zeros
        for block, loss in zip(blocks, found.loss, strict=True):
            block.off = True
            assert loss.item() == pytest.approx(scores(model, pictures, LABELS)[0])
            block.off = False
