"""What else goes with a converted model: names, files, surgery, the way back; and refusals."""

import copy

import pytest
import timm
import torch
from timm.layers import SwiGLU
from torch import nn

import minivit
import vitlab
from tests.foreign import REPRESENTATIVE, converted, huggingfaces, timms
from tests.parity import pictures
from tests.vitlab.test_conversion import altered, resnets, torchvisions
from vitlab.calls import activation
from vitlab.inversion import unwind

IMAGES = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(1)).double()


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
