"""Models of other libraries as minivit's: the same function, and what goes with it; what differs is refused."""

import copy

import pytest
import timm
import torch
import torchvision
from timm.layers import SwiGLU
from torch import nn

import minivit
import vitlab
from tests.foreign import REPRESENTATIVE, converted, huggingfaces, timms
from tests.parity import draw, pictures
from vitlab.calls import activation
from vitlab.inversion import unwind

IMAGES = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1)).double()


RESNET = torchvision.models.resnet


def resnets(kind=RESNET.Bottleneck, **changes):
    return draw(RESNET.ResNet(kind, (1, 2, 1, 1), num_classes=7, **changes).eval())


def assert_same(model, other):
    """To the bit. Torch's matmul folds a weight that trains in another way, which may round."""
    frozen = [one.requires_grad_(False) for one in (model, other)]
    assert torch.equal(*(one(IMAGES.float()) for one in frozen))


RATES = {"dropout": 0.1, "attention_dropout": 0.2}


@pytest.mark.parametrize(("make", "convert", "rates"), [
    (lambda: torchvisions(**RATES), minivit.from_torchvision, RATES),
    (resnets, minivit.from_torchvision, {}),
    (lambda: timms("siglip"), vitlab.from_timm, {}),
    (lambda: huggingfaces("Dinov2Model"), vitlab.from_huggingface, {}),
])  # fmt: skip
def test_the_copy_can_be_trained_and_has_dtype_mode_and_dropout(make, convert, rates):
    theirs = make().double().train()
    before = {key: tensor.clone() for key, tensor in theirs.state_dict().items()}
    ours, random = convert(theirs), torch.get_rng_state()
    convert(theirs)
    assert torch.equal(torch.get_rng_state(), random)  # nothing is drawn
    assert ours.training and ours.head.weight.dtype == torch.float64
    assert all(p.requires_grad for p in ours.parameters())
    assert vars(ours.config).items() >= rates.items()
    with torch.no_grad():
        for tensor in ours.state_dict().values():
            tensor.zero_()
    assert all(torch.equal(before[key], tensor) for key, tensor in theirs.state_dict().items())


def test_what_timm_or_hugging_face_knows_of_a_model_goes_with_it():
    plain = vitlab.from_timm(timms("vit"))
    expected = minivit.ViTConfig((16, 16), (8, 8), 3, 5, 24, 2, 3, 2.0, "class")
    assert type(plain) is minivit.ViT and plain.config == expected
    theirs = timm.create_model("vit_tiny_patch16_224")
    ours = vitlab.from_timm(theirs)
    assert ours.classes[:2] == ["tench, Tinca tinca", "goldfish, Carassius auratus"]
    mean = (0.5, 0.5, 0.5)
    assert ours.preprocess == minivit.Preprocess((224, 224), (248, 248), "bicubic", mean, mean)
    assert ours.licence == theirs.pretrained_cfg.get("license")
    other = timm.create_model("vit_tiny_patch16_224", img_size=32, num_classes=3)
    smaller = vitlab.from_timm(other)
    assert smaller.preprocess.size == (32, 32) and smaller.classes is None
    names = {0: "cat", 1: "dog", 2: "fox", 3: "owl", 4: "yak"}
    theirs = huggingfaces("ViTForImageClassification", id2label=names, num_labels=5)
    assert vitlab.from_huggingface(theirs).classes == ["cat", "dog", "fox", "owl", "yak"]
    assert vitlab.from_huggingface(huggingfaces("ViTForImageClassification")).classes is None


@pytest.mark.parametrize(("make", "name"), REPRESENTATIVE, ids=[name for _, name in REPRESENTATIVE])
def test_a_model_comes_back_from_its_file_and_parts_can_be_removed(make, name, tmp_path):
    model, path = converted(make(name, torch.float32)), tmp_path / "model.safetensors"
    minivit.save(model, path)
    back = minivit.load(path)
    assert type(back) is type(model) and back.config == model.config
    assert_same(back, model)
    whole = model(IMAGES.float())
    for part in "attention", "mlp", "norm", "positions", "residual":
        other = minivit.remove(model, part)
        assert not torch.allclose(other(IMAGES.float()), whole)
        minivit.save(other, tmp_path / f"{part}.safetensors")
        assert_same(minivit.load(tmp_path / f"{part}.safetensors"), other)


def test_without_positions_norm_and_registers_stay_and_without_attention_no_layer_scale():
    model = converted(timms("clip with registers"))
    expected = copy.deepcopy(model)
    expected.positions.table.zero_()
    again = minivit.remove(minivit.remove(model, "positions"), "positions")
    for other in minivit.remove(model, "positions"), again:
        assert torch.equal(other(IMAGES), expected(IMAGES))
    model = converted(timms("deit 3"))
    expected = copy.deepcopy(model)
    for block in expected.blocks:
        block.attention.scale.zero_()
    torch.testing.assert_close(minivit.remove(model, "attention")(IMAGES), expected(IMAGES))


def test_a_converted_model_is_unwound_to_the_image():
    # A patch is 12 numbers and a token 24: the embedding keeps everything.
    theirs = timms("dinov2 with registers", img_size=8, patch_size=2, mlp_ratio=2)
    model, images = converted(theirs), pictures(theirs, 8)
    assert model.blocks[0].attention.scale.abs().mean() > 0.1  # drawn, no 1e-5
    inverse = unwind(model, activation(model, "blocks.1")(images), at="blocks.1")
    assert inverse.exact.all(), inverse.stages
    torch.testing.assert_close(inverse.image, images, rtol=0, atol=1e-6)


def set_attribute(part, **attributes):
    theirs = timms("vit")
    vars(theirs.get_submodule(part)).update(attributes)
    return theirs


HEAD = "ViTForImageClassification"


@pytest.mark.parametrize(("make", "what"), [
    (lambda: set_attribute("blocks.1.norm1", eps=1e-5), "same eps of LayerNorm in the whole model: got 1e-06 in blocks.0.norm1, 1e-05 in blocks.1.norm1"),
    (lambda: set_attribute("blocks.0.attn", scale=1.0), r"divided by sqrt\(8\) in blocks.0.attn: got 1"),
    (lambda: set_attribute("blocks.0.attn", num_heads=6), "same number of heads in the whole model: got 6 in blocks.0.attn, 3 in blocks.1.attn"),
    (lambda: altered(timms("vit"), "blocks.1.mlp.act", nn.GELU("tanh")), "same activation in the whole model: got gelu in blocks.0.mlp, tanh in blocks.1.mlp"),
    (lambda: timms("vit", qk_norm=True), "norms or gates inside blocks.0.attn"),
    (lambda: timms("deit distilled", fc_norm=True), "a norm that no token goes through"),
    (lambda: timms("vit", global_pool="max"), "global_pool='max'"),
    (lambda: timms("vit", pos_embed="none"), "no positions"),
    (lambda: timms("vit", norm_layer="rmsnorm"), "as minivit has it: got RmsNorm in blocks.0.norm1"),
    (lambda: timms("vit", final_norm=False), "no norm after the blocks"),
    (lambda: timms("dinov2 giant", mlp_layer=SwiGLU), "got SwiGLU in blocks.0.mlp"),
    (lambda: timms("dinov2 giant", act_layer=nn.GELU), "or a SwiGLU with the gates first and no norm in blocks.0.mlp: got GluMlp"),
    (lambda: minivit.create("vit_8px"), "expected timm's VisionTransformer.*: got ViT$"),
    (lambda: altered(huggingfaces(HEAD), "vit.layers.1.mlp.activation_fn", nn.ReLU()), "expected a GELU, .* in vit.layers.1.mlp"),
    (lambda: altered(huggingfaces("Dinov2ForImageClassification"), "dinov2.encoder.layer.1.layer_scale2", nn.Identity()), "1 missing: blocks.1.mlp.scale"),
    (lambda: altered(huggingfaces("Dinov2Model, giant"), "encoder.layer.0.mlp.act_fn", nn.GELU()), "SwiGLU.*: got Dinov2SwiGLUFFN"),
    (lambda: huggingfaces("SiglipVisionModel", vision_use_head=False), "got SiglipVisionModel without a head"),
    (lambda: timms("vit"), "of transformers: got VisionTransformer"),
])  # fmt: skip
def test_what_differs_from_our_vit_in_a_model_of_another_library_is_named(make, what):
    model = make()
    theirs = type(model).__module__.startswith("transformers") or "of transformers" in what
    with pytest.raises(ValueError, match=what):
        (vitlab.from_huggingface if theirs else vitlab.from_timm)(model)


def test_an_untrained_variant_has_the_parts_that_its_fields_name():
    torch.manual_seed(0)
    model = minivit.create("vit_32px", registers=2, layer_scale=0.1, embedding_norm=True, norm_eps=1e-5, pool="class+mean", activation="quick")  # fmt: skip
    assert model.class_token.shape == (1, 3, 128) and model.head.in_features == 256
    assert model.class_token[0, 1].ne(model.class_token[0, 2]).any()
    assert {p.eps for p in model.modules() if isinstance(p, nn.LayerNorm)} == {1e-5}
    assert (model.blocks[3].mlp.scale == 0.1).all()
    assert model(torch.zeros(1, 3, 48, 32)).shape == (1, 10)  # another grid


SQUARES = torch.randn(2, 2 + 1, 24, 24, generator=torch.Generator().manual_seed(1))


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
    torch.testing.assert_close(ours(SQUARES), torchvisions()(SQUARES))


LAYER = "encoder.layers.encoder_layer_1"


def broken(theirs, change):
    state = dict(theirs.state_dict())
    change(state)
    return state


def altered(theirs, part, module):
    """The same with another module somewhere."""
    theirs.set_submodule(part, module)
    return theirs


VIT = minivit.ViTConfig((24, 24), (8, 8), 3, 7, 12, 2, 3, 20 / 12)


@pytest.mark.parametrize(("make", "heads", "config"), [
    (torchvisions, 3, VIT),
    *((lambda kind=kind: resnets(kind), None, minivit.ResNetConfig(block=name, stages=(1, 2, 1, 1), classes=7))
      for name, kind in (("basic", RESNET.BasicBlock), ("bottleneck", RESNET.Bottleneck))),
])  # fmt: skip
def test_a_module_and_its_state_dict_give_the_same_function(make, heads, config):
    theirs = make()
    expected, state = theirs(SQUARES), theirs.state_dict()
    assert expected.std() > 0.1
    old = {key: tensor for key, tensor in state.items() if "num_batches" not in key}  # as in files
    models = [minivit.from_torchvision(theirs), *(minivit.from_torchvision(s, heads=heads) for s in (state, old))]  # fmt: skip
    for ours in models:
        assert ours.config == config and not ours.training
        torch.testing.assert_close(ours(SQUARES), expected)
    assert heads or models[-1].stem.norm.num_batches_tracked == 0


@pytest.mark.parametrize(("source", "heads", "problem"), [
    (lambda: broken(torchvisions(), lambda s: s.pop("heads.head.weight")), 3, "head.weight of 2 axes: got none"),
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
    (lambda: resnets(norm_layer=lambda w: torch.nn.BatchNorm2d(w, eps=1e-3)), None, r".*eps=0.001"),
    (lambda: broken(resnets(), lambda s: s.pop("fc.weight")), None, "fc.weight of 2 axes: got none"),
])  # fmt: skip
def test_what_is_not_torchvisions_is_refused(source, heads, problem):
    with pytest.raises(ValueError, match=problem):
        minivit.from_torchvision(source(), heads=heads)
