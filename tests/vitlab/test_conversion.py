import pytest
import torch
import torchvision

import minivit
from tests.parity import draw

IMAGES = torch.randn(2, 2 + 1, 24, 24, generator=torch.Generator().manual_seed(1))


def torchvisions(**changes):
    sizes = {"image_size": 24, "patch_size": 8, "num_layers": 2, "num_heads": 3, "hidden_dim": 12, "mlp_dim": 20, "num_classes": 7}  # fmt: skip
    return draw(torchvision.models.VisionTransformer(**sizes | changes)).eval()


def test_sizes_are_read_from_shapes_heads_from_the_width_and_older_names_are_known():
    assert minivit.from_torchvision(torchvisions()).config.hidden == 20
    state = torchvisions(hidden_dim=768, num_heads=12).state_dict()
    assert minivit.from_torchvision(state).config.heads == 12
    state = torchvisions().state_dict()
    for i, layer in enumerate((0, 3), 1):
        old = {key: key.replace(f"mlp.{layer}.", f"mlp.linear_{i}.") for key in state}
        state = {old[key]: tensor for key, tensor in state.items()}
    assert sum("linear" in key for key in state) == 8
    ours = minivit.from_torchvision(state, heads=3)
    torch.testing.assert_close(ours(IMAGES), torchvisions()(IMAGES))


LAYER = "encoder.layers.encoder_layer_1"
Q = f"{LAYER}.self_attention.in_proj_weight"


def broken(theirs, change):
    state = dict(theirs.state_dict())
    change(state)
    return state


def altered(theirs, part, module):
    """The same with another module somewhere."""
    theirs.set_submodule(part, module)
    return theirs


RESNET = torchvision.models.resnet


def resnets(kind=RESNET.Bottleneck, **changes):
    return draw(RESNET.ResNet(kind, (1, 2, 1, 1), num_classes=7, **changes).eval())


VIT = minivit.ViTConfig((24, 24), (8, 8), 3, 7, 12, 2, 3, 20 / 12)


@pytest.mark.parametrize(("make", "heads", "config"), [
    (torchvisions, 3, VIT),
    *((lambda kind=kind: resnets(kind), None, minivit.ResNetConfig(block=name, stages=(1, 2, 1, 1), classes=7))
      for name, kind in (("basic", RESNET.BasicBlock), ("bottleneck", RESNET.Bottleneck))),
])  # fmt: skip
def test_a_module_and_its_state_dict_give_the_same_function(make, heads, config):
    theirs = make()
    expected, state = theirs(IMAGES), theirs.state_dict()
    assert expected.std() > 0.1
    old = {key: tensor for key, tensor in state.items() if "num_batches" not in key}  # as in files
    models = [minivit.from_torchvision(theirs), *(minivit.from_torchvision(s, heads=heads) for s in (state, old))]  # fmt: skip
    for ours in models:
        assert ours.config == config and not ours.training
        torch.testing.assert_close(ours(IMAGES), expected)
    assert heads or models[-1].stem.norm.num_batches_tracked == 0


@pytest.mark.parametrize(("source", "heads", "problem"), [
    (lambda: broken(torchvisions(), lambda s: s.pop("heads.head.weight")), 3, "head.weight of 2 axes: got none"),
    (lambda: broken(torchvisions(), lambda s: s.update({Q: s[Q].T.contiguous()})), 3, r"1 of another shape: \S*in_proj_weight \(\[12, 36\], expected \[36, 12\]\)"),
    (lambda: broken(torchvisions(), lambda s: s.update({"encoder.layers.encoder_layer_0.mlp.linear_1.bias": torch.ones(20)})), 3, "once: got"),
    (lambda: broken(torchvisions(), lambda s: (s.pop("encoder.ln.bias"), s.update(extra=torch.ones(2), more=torch.ones(2)))), 3, "1 missing: encoder.ln.bias; 2 surplus: extra, more"),
    (lambda: torchvisions().state_dict(), None, "dim=12, heads=None"),
    (torchvisions, 4, r"\[3, 3\]"),
    (lambda: altered(torchvisions(), f"{LAYER}.mlp.1", torch.nn.GELU("tanh")), None, r"GELU\(approximate='tanh'\)"),
    (lambda: altered(torchvisions(), f"{LAYER}.self_attention", torch.nn.MultiheadAttention(12, 4, batch_first=True)), None, r"\[3, 4\]"),
    (lambda: torchvisions(norm_layer=torch.nn.LayerNorm), None, "1e-05"),
    (lambda: torchvisions(representation_size=5), None, "surplus: heads.pre_logits.bias"),
    (lambda: altered(resnets(), "layer2.0.conv1", torch.nn.Conv2d(256, 128, 1, 2, bias=False)), None, r".*stride=\(2, 2\)"),
    (lambda: altered(resnets(), "avgpool", torch.nn.AdaptiveMaxPool2d(1)), None, r"AdaptiveMaxPool2d"),
    (lambda: resnets(replace_stride_with_dilation=[False, True, False]), None, r"Conv2d\(.*stride=\(1, 1\)"),
    (lambda: resnets(norm_layer=lambda w: torch.nn.BatchNorm2d(w, eps=1e-3)), None, r".*eps=0.001"),
    (lambda: resnets(width_per_group=128), None, r"Conv2d\(64, 128"),
    (lambda: broken(resnets(), lambda s: s.pop("fc.weight")), None, "fc.weight of 2 axes: got none"),
])  # fmt: skip
def test_what_is_not_torchvisions_is_refused(source, heads, problem):
    with pytest.raises(ValueError, match=problem):
        minivit.from_torchvision(source(), heads=heads)
