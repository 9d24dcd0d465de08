"""Everybody's architectures: small, each with what its author's code says of it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from math import prod
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn


@dataclass(frozen=True)
class Patches:
    """The patches among the tokens of an attention, in reading order."""

    grid: tuple[int, int]
    first: int = 1  # index of the first; class and register tokens stand before it
    step: tuple[float, float] = (8, 8)  # pixels from one to the next

    @property
    def where(self) -> range:
        return range(self.first, self.first + prod(self.grid))


@dataclass(frozen=True)
class Tried:
    """An architecture, small, and what its author says of it. Names are those of its modules."""

    make: Callable[[], nn.Module]
    weights: str = "*.attn.weights"  # the attention, as ``record`` is told
    size: tuple[int, int] = (32, 32)
    # By the number of tokens; or, for maps, by their rows and columns.
    grids: Mapping[int, Patches] = field(default_factory=lambda: {17: Patches((4, 4))})
    give: tuple[int, int] | None = None  # the grid that a user must give
    # Which tokens the source reads after its last block, in the mean: the first, the patches, what
    # an attention pools, or these. Of a model without an answer the user must say it.
    reads: str | tuple[int, ...] = "first"
    told: bool = False
    others: tuple[int, ...] = ()  # the softmaxes that are not in ``weights``, in the order they run
    blocks: tuple[str, ...] = ("blocks.0", "blocks.1")
    stream: tuple[str, ...] = ("blocks.0", "blocks.0.norm2", "blocks.1", "blocks.1.norm2", "norm")
    branches: int = 4
    # Patterns of the modules that branches are named after, and what they end in, where that is
    # neither these nor a factor of what they give.
    ends: Mapping[str, str] = field(default_factory=dict)
    end: Callable[[Any, Tensor], Tensor] | None = None  # from the last block's tokens to logits
    answer: Callable[[Any], Any] = lambda output: getattr(output, "logits", output)
    positions: Callable[[Any], Tensor] | None = None  # [rows, columns, dim]
    # Of each block the side of the grid, that of a window, and by how much windows are shifted.
    windows: tuple[tuple[int, int, int], ...] = ()
    channels_last: bool = False  # maps are [batch, rows, columns, channels]

    def end_of(self, branch: str) -> str:
        for pattern, end in self.ends.items():
            branch = re.sub(f"{pattern}$", end, branch)
        return branch

    def to_map(self, x: Tensor) -> Tensor:
        """``[batch, dim, rows, columns]``."""
        if x.ndim == 4:
            return x.movedim(-1, 1) if self.channels_last else x
        patches = self.grids[x.shape[1]]
        return x[:, patches.where].mT.unflatten(2, patches.grid)


class Library:
    """A library that is imported when something of it is used."""

    def __init__(self, name):
        self.name = name

    def __getattr__(self, part):
        return getattr(import_module(self.name), part)


timm, torchvision, hf = Library("timm"), Library("torchvision"), Library("transformers")
vit_pytorch, lucid = Library("vit_pytorch"), lambda file: Library(f"vit_pytorch.{file}")
clip, monai = Library("open_clip.transformer"), Library("monai.networks.nets")

TIMM = {"embed_dim": 16, "depth": 2, "num_heads": 2, "img_size": 32, "patch_size": 8, "num_classes": 5}  # fmt: skip
HF = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16, "image_size": 32, "patch_size": 8, "num_labels": 5}  # fmt: skip
LUCID = {"image_size": 32, "patch_size": 8, "num_classes": 5, "dim": 16, "depth": 2, "heads": 2}


def of_timm(name, **options):
    return lambda: timm.create_model(name, **options)


def cls(model, x):
    return model.head(model.norm(x)[:, 0])


def mean(extra=1):
    """Reads the mean of the patches."""
    return lambda model, x: model.head(model.fc_norm(model.norm(x)[:, extra:].mean(1)))


def reads_by_class_attention(model, x):
    """The end of CaiT: blocks in which a class token alone asks the patches."""
    token = model.cls_token.expand(len(x), -1, -1)
    for block in model.blocks_token_only:
        token = block(x, token)
    return model.head(model.norm(torch.cat([token, x], 1))[:, 0])


def reads_by_class_blocks(model, x):
    """The end of XCiT, after which a class token stands before the patches."""
    x = torch.cat([model.cls_token.expand(len(x), -1, -1), x], 1)
    for block in model.cls_attn_blocks:
        x = block(x)
    return cls(model, x)


def table(extra=1, grid=(4, 4)):
    return lambda model: model.pos_embed[0, extra:].unflatten(0, grid)


def timm_vit(name="vit_tiny_patch16_224", extra=1, patches=None, options=None, **said):
    sizes = TIMM | (options or {})
    grids = {16 + extra: Patches((4, 4), extra)} if patches is None else patches
    default = {"end": cls, "positions": table(extra)}
    return Tried(of_timm(name, **sizes), grids=grids, **(default | said))


def with_stem(**options):
    """MobileCLIP's, small."""
    hybrid = Library("timm.models.vision_transformer_hybrid")
    stem = hybrid.ConvStem(channels=(4, 8, 16), kernel_size=(2, 2, 2), stride=(2, 2, 2), padding=0)
    embed = partial(hybrid.HybridEmbed, backbone=stem, proj=False)
    return timm.models.VisionTransformer(embed_layer=embed, no_embed_class=True, **options)


def of_maxxvit(window=None, **sizes):
    maxxvit = Library("timm.models.maxxvit")
    parts = maxxvit.MaxxVitTransformerCfg(window_size=window)
    config = maxxvit.MaxxVitCfg(**sizes, transformer_cfg=parts)
    return maxxvit.MaxxVit(config, img_size=64, num_classes=5)


def of_mvitv2(**sizes):
    mvitv2 = Library("timm.models.mvitv2")
    return mvitv2.MultiScaleVit(mvitv2.MultiScaleVitCfg(**sizes), img_size=64, num_classes=5)


def rows(pattern, middle, end):
    """Blocks, and the stream before and between their branches."""
    blocks = tuple(pattern.format(i) for i in range(2))
    stream = tuple(name for block in blocks for name in (block, f"{block}.{middle}"))
    return {"blocks": blocks, "stream": (*stream, end)}


def hugging(kind, config, pattern, middle="layernorm_after", norm="layernorm", attention="*.attention.weights", sizes=None, extra=1, **said):  # fmt: skip
    base = pattern.partition(".")[0]
    default = {"end": lambda m, x: m.classifier(getattr(m, base).layernorm(x)[:, 0]),
               "positions": lambda m: getattr(m, base).embeddings.position_embeddings[0, 1:17].unflatten(0, (4, 4))}  # fmt: skip
    make = lambda: getattr(hf, kind)(getattr(hf, config)(**HF | (sizes or {})))  # noqa: E731
    first = extra if extra < 9 else 1  # the others of YOLOS stand behind
    grids = {16 + extra: Patches((4, 4), first)}
    return Tried(make, attention, grids=grids, **rows(pattern, middle, norm), **(default | said))


TORCHVISION = {
    "torchvision ViT": Tried(lambda: torchvision.models.VisionTransformer(32, 8, 2, 2, 16, 16, num_classes=5), "*.self_attention.weights", end=lambda m, x: m.heads(m.encoder.ln(x)[:, 0]), positions=lambda m: m.encoder.pos_embedding[0, 1:].unflatten(0, (4, 4)), **rows("encoder.layers.encoder_layer_{}", "ln_2", "encoder.ln")),
    "torchvision Swin": Tried(lambda: torchvision.models.SwinTransformer([4, 4], 12, [2, 2], [1, 2], [4, 4], num_classes=5), "*.attn.weights", blocks=("features.1.0",), branches=8, channels_last=True, grids={64: Patches((8, 8), 0, (4, 4)), 16: Patches((4, 4), 0, (8, 8))}, reads="patches", windows=((8, 4, 0), (8, 4, 2), (4, 4, 0), (4, 4, 0))),
    "torchvision Swin v2": Tried(lambda: torchvision.models.SwinTransformer([4, 4], 12, [2, 2], [1, 2], [4, 4], num_classes=5, block=torchvision.models.swin_transformer.SwinTransformerBlockV2, downsample_layer=torchvision.models.swin_transformer.PatchMergingV2), "*.attn.weights", ends={"attn": "norm1", "mlp": "norm2"}, blocks=("features.1.0",), branches=8, channels_last=True, grids={64: Patches((8, 8), 0, (4, 4)), 16: Patches((4, 4), 0, (8, 8))}, reads="patches", windows=((8, 4, 0), (8, 4, 2), (4, 4, 0), (4, 4, 0))),
    "torchvision MaxViT": Tried(lambda: torchvision.models.MaxVit((64, 64), 8, 8, [16], [1], 8, 0.0, num_classes=5), "*_attention.weights", (64, 64), blocks=("blocks.0.layers.0",), branches=5),
    "torchvision ResNet": Tried(lambda: torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=5), "*.weights", (64, 64), blocks=("layer1.0", "layer2.0")),
}  # fmt: skip

NO_TABLE = {"positions": None}
VITS_OF_TIMM = {
    "timm ViT": timm_vit(),
    "timm ViT, not square": timm_vit(options={"img_size": (32, 48)}, patches={25: Patches((4, 6))}, size=(32, 48), positions=table(1, (4, 6))),
    "timm ViT, padded": timm_vit(options={"dynamic_img_size": True, "dynamic_img_pad": True}, patches={25: Patches((4, 6))}, size=(25, 43)),
    "timm ViT, mean pooling": timm_vit("vit_base_patch16_gap_224", 0, end=mean(0), reads="patches"),
    "timm ViT with registers": timm_vit(extra=3, options={"reg_tokens": 2}),
    "timm DeiT, distilled": timm_vit("deit_tiny_distilled_patch16_224", 2, end=lambda m, x: (m.head(m.norm(x)[:, 0]) + m.head_dist(m.norm(x)[:, 1])) / 2, reads=(0, 1)),
    "timm DeiT III": timm_vit("deit3_small_patch16_224", positions=table(0), end=cls),
    "timm DINOv2 with registers": timm_vit("vit_small_patch14_reg4_dinov2", 5, positions=table(0), end=cls),
    "timm DINOv3": timm_vit("vit_small_patch16_dinov3", 5, end=mean(5), **NO_TABLE, reads="patches"),
    "timm CaiT": timm_vit("cait_xxs24_224", 0, weights="blocks.*.attn.weights", end=reads_by_class_attention, others=(2, 3), branches=8, reads="patches"),
    "timm SigLIP": timm_vit("vit_base_patch16_siglip_224", 0, weights="blocks.*.attn.weights", others=(2,), end=lambda m, x: m.head(m.attn_pool(m.norm(x))), reads="pool"),
    "timm BEiT": timm_vit("beit_base_patch16_224", end=mean(), positions=None, reads="patches"),
    "timm EVA-02": timm_vit("eva02_tiny_patch14_224", end=mean(), reads="patches"),
    "timm ViT with RoPE": timm_vit("vit_base_patch16_rope_224", **NO_TABLE),
    "timm ViT with relative positions": timm_vit("vit_relpos_small_patch16_224", 0, end=mean(0), positions=None, reads="patches"),
    "timm ViT with a stem of convolutions": Tried(lambda: with_stem(**TIMM | {"patch_size": 1}), end=cls, positions=table(0)),
    "timm FlexiViT": timm_vit("flexivit_small", positions=table(0)),
    "timm Perception Encoder": timm_vit("vit_pe_core_tiny_patch16_384", weights="blocks.*.attn.weights", others=(2,), end=lambda m, x: m.head(m.attn_pool(m.norm(x))), reads="pool"),
    "timm NaFlexViT": Tried(of_timm("naflexvit_base_patch16_gap", embed_dim=16, depth=2, num_heads=2, num_classes=5, patch_size=8), grids={20: Patches((4, 4), 4)}, give=(4, 4), end=mean(4), reads="patches"),
    "timm MLP-Mixer": Tried(lambda: Library("timm.models.mlp_mixer").MlpMixer(img_size=32, patch_size=8, num_blocks=2, embed_dim=16, num_classes=5), "*.weights", grids={16: Patches((4, 4), 0)}, end=lambda m, x: m.head(m.norm(x).mean(1))),
}  # fmt: skip

MBCONV = {"conv2_kxk": "conv3_1x1"}
HIERARCHIES_OF_TIMM = {
    "timm Swin": Tried(of_timm("swin_tiny_patch4_window7_224", img_size=56, embed_dim=12, depths=(1, 1), num_heads=(1, 2), num_classes=5), size=(56, 56), blocks=("layers.0.blocks.0",), channels_last=True, grids={196: Patches((14, 14), 0, (4, 4)), 49: Patches((7, 7), 0, (8, 8))}, reads="patches", windows=((14, 7, 0), (7, 7, 0))),
    "timm Swin v2": Tried(of_timm("swinv2_tiny_window8_256", img_size=64, embed_dim=12, depths=(1, 1), num_heads=(1, 2), num_classes=5), size=(64, 64), blocks=("layers.0.blocks.0",), channels_last=True, grids={256: Patches((16, 16), 0, (4, 4)), 64: Patches((8, 8), 0, (8, 8))}, reads="patches", windows=((16, 8, 0), (8, 8, 0))),
    "timm XCiT": Tried(of_timm("xcit_nano_12_p16_224", **TIMM | {"img_size": 64, "patch_size": 16}), size=(64, 64), weights="blocks.*.attn.weights", grids={16: Patches((4, 4), 0)}, others=(2, 3), branches=6, end=reads_by_class_blocks, stream=("blocks.0", "blocks.0.norm3", "blocks.0.norm2", "blocks.1", "blocks.1.norm3", "blocks.1.norm2", "blocks.1")),
    "timm ConViT": Tried(of_timm("convit_tiny", **TIMM | {"img_size": 32}), grids={16: Patches((4, 4), 0)}, end=cls),
    "timm CrossViT": Tried(of_timm("crossvit_tiny_240", img_size=240, embed_dim=(16, 32), depth=((1, 1, 0),), num_heads=(2, 2), num_classes=5), size=(240, 240), blocks=("blocks.0.blocks.0.0",), grids={401: Patches((20, 20), 1, (12, 12)), 197: Patches((14, 14), 1, (240 / 14, 240 / 14))}),
    "timm PiT": Tried(of_timm("pit_ti_224", img_size=64, num_classes=5, base_dims=[8, 8, 8], depth=[1, 1, 1], heads=[2, 2, 4]), size=(64, 64), blocks=("transformers.0.blocks.0",), branches=6, grids={50: Patches((7, 7)), 17: Patches((4, 4), 1, (16, 16)), 5: Patches((2, 2), 1, (32, 32))}),
    "timm Hiera": Tried(of_timm("hiera_tiny_224", embed_dim=16, stages=(1, 1, 1, 1), img_size=64, num_classes=5), size=(64, 64), blocks=("blocks.0",), positions=table(0, (16, 16)), grids={256: Patches((16, 16), 0, (4, 4))}, branches=5, reads="patches"),
    "timm PVT v2": Tried(of_timm("pvt_v2_b0", num_classes=5, depths=(1, 1, 1, 1), embed_dims=(8, 8, 16, 16), num_heads=(1, 1, 2, 2)), size=(64, 64), blocks=("stages.0.blocks.0",), branches=8, grids={4: Patches((2, 2), 0, (32, 32)), 256: Patches((16, 16), 0, (4, 4))}, reads="patches"),
    "timm SAM": Tried(of_timm("samvit_base_patch16_224", embed_dim=16, depth=2, num_heads=2, num_classes=5), size=(224, 224), channels_last=True),
    "timm LeViT": Tried(lambda: Library("timm.models.levit").Levit(img_size=64, embed_dim=(16, 24, 32), key_dim=8, num_heads=(2, 3, 4), depth=(1, 1, 1), num_classes=5), size=(64, 64), others=(1, 3), blocks=("stages.0.blocks.0",), branches=8, grids={16: Patches((4, 4), 0, (16, 16))}, reads="patches"),
    "timm CoAtNet": Tried(lambda: of_maxxvit(embed_dim=(8, 8, 32, 32), depths=(1, 1, 1, 1), stem_width=8), size=(64, 64), blocks=("stages.2.blocks.0", "stages.3.blocks.0"), branches=6, ends=MBCONV, grids={16: Patches((4, 4), 0, (16, 16)), 4: Patches((2, 2), 0, (32, 32))}, reads="patches"),
    "timm MaxViT": Tried(lambda: of_maxxvit(embed_dim=(32, 32), depths=(1, 1), stem_width=8, block_type=("M", "M"), window=(4, 4)), size=(64, 64), weights="*.attn.weights", blocks=("stages.0.blocks.0", "stages.1.blocks.0"), branches=10, ends=MBCONV),
    "timm MobileViT": Tried(of_timm("mobilevit_xxs", num_classes=5), size=(64, 64), weights="*.transformer.?.attn.weights", blocks=("stages.2.1",), branches=21, ends={"conv1_1x1": "conv3_1x1"}),
    "timm MViTv2": Tried(lambda: of_mvitv2(depths=(1, 1, 1, 1), embed_dim=8), size=(64, 64), blocks=("stages.0",), branches=5, grids={64: Patches((8, 8), 0, (8, 8)), 256: Patches((16, 16), 0, (4, 4))}, reads="patches"),
    "timm VOLO": Tried(lambda: Library("timm.models.volo").VOLO([1, 1], img_size=64, stem_hidden_dim=8, embed_dims=[16, 16], num_heads=[2, 2], downsamples=(True, False), outlook_attention=(True, False), num_classes=5, use_aux_head=False), size=(64, 64), weights="network.2.*.attn.weights", others=(0, 2, 3), blocks=("post_network.0", "post_network.1"), end=cls, grids={16: Patches((4, 4), 0, (16, 16)), 17: Patches((4, 4), 1, (16, 16))}, reads="patches"),
    "timm ConvNeXt": Tried(of_timm("convnext_atto", num_classes=5), "*.weights", size=(64, 64), branches=12, blocks=("stages.0", "stages.1")),
}  # fmt: skip

SIGLIP = {"vision_config": HF, "text_config": {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "vocab_size": 10, "bos_token_id": 0, "eos_token_id": 1}}  # fmt: skip
CLIP = rows("vision_model.encoder.layers.{}", "layer_norm2", "vision_model.encoder.layers.1")


def cls_and_mean(base, patches):
    """Reads the class token and the mean of the patches, side by side."""

    def end(model, x):
        x = getattr(model, base).layernorm(x)
        return model.classifier(torch.cat([x[:, 0], x[:, patches:].mean(1)], 1))

    return end


def mean_of(base):
    """Normalises the mean of the patches."""
    return lambda m, x: m.classifier(getattr(m, base).pooler.layernorm(x[:, 1:].mean(1)))


def clip_positions(extra):
    part = attrgetter("vision_model.embeddings.position_embedding.weight")
    return lambda m: part(m)[extra:].unflatten(0, (4, 4))


HUGGING_FACE = {
    "HF ViT": hugging("ViTForImageClassification", "ViTConfig", "vit.layers.{}", norm="vit.layernorm"),
    "HF ViT, eager": hugging("ViTForImageClassification", "ViTConfig", "vit.layers.{}", norm="vit.layernorm", sizes={"attn_implementation": "eager"}),
    "HF DeiT": hugging("DeiTForImageClassification", "DeiTConfig", "deit.layers.{}", norm="deit.layernorm", extra=2, positions=lambda m: m.deit.embeddings.position_embeddings[0, 2:].unflatten(0, (4, 4))),
    "HF DINOv2": hugging("Dinov2ForImageClassification", "Dinov2Config", "dinov2.encoder.layer.{}", "norm2", "dinov2.layernorm", sizes={"mlp_ratio": 1}, end=cls_and_mean("dinov2", 1), reads=tuple(range(17))),
    "HF DINOv2 with registers": hugging("Dinov2WithRegistersForImageClassification", "Dinov2WithRegistersConfig", "dinov2_with_registers.encoder.layer.{}", "norm2", "dinov2_with_registers.layernorm", sizes={"mlp_ratio": 1}, extra=5, end=cls_and_mean("dinov2_with_registers", 5), reads=(0, *range(5, 21))),
    "HF DINOv3": hugging("DINOv3ViTModel", "DINOv3ViTConfig", "model.layer.{}", "norm2", "norm", extra=1, positions=None),
    "HF CLIP": hugging("CLIPVisionModelWithProjection", "CLIPVisionConfig", "vision_model.encoder.layers.{}", "layer_norm2", "vision_model.encoder.layers.1", "*.self_attn.weights", positions=clip_positions(1), end=None),
    "HF CLIP, classifier": Tried(lambda: hf.CLIPForImageClassification(hf.CLIPConfig(vision_config=HF, num_labels=5)), "*.self_attn.weights", end=lambda m, x: m.classifier(x[:, 1:].mean(1)), positions=clip_positions(1), **CLIP, reads="patches"),
    "HF SigLIP, classifier": Tried(lambda: hf.SiglipForImageClassification(hf.SiglipConfig(**SIGLIP, num_labels=5)), "*.self_attn.weights", grids={16: Patches((4, 4), 0)}, others=(2,), end=lambda m, x: m.classifier(m.vision_model.post_layernorm(x).mean(1)), positions=clip_positions(0), **CLIP, reads="patches"),
    "HF BEiT": hugging("BeitForImageClassification", "BeitConfig", "beit.layers.{}", norm="beit.layernorm", end=mean_of("beit"), reads="patches"),
    "HF Data2Vec": hugging("Data2VecVisionForImageClassification", "Data2VecVisionConfig", "data2vec_vision.encoder.layer.{}", norm="data2vec_vision.layernorm", end=mean_of("data2vec_vision"), ends={"intermediate": "output"}, attention="*.attention.attention.weights", reads="patches"),
    "HF MSN": hugging("ViTMSNForImageClassification", "ViTMSNConfig", "vit.layers.{}", norm="vit.layernorm"),
    "HF I-JEPA": hugging("IJepaForImageClassification", "IJepaConfig", "ijepa.layers.{}", norm="ijepa.layernorm", extra=0, end=lambda m, x: m.classifier(m.ijepa.layernorm(x).mean(1)), positions=lambda m: m.ijepa.embeddings.position_embeddings[0].unflatten(0, (4, 4)), reads="patches"),
    "HF YOLOS": hugging("YolosModel", "YolosConfig", "encoder.layer.{}", norm="layernorm", attention="*.attention.attention.weights", sizes={"image_size": [32, 32], "num_detection_tokens": 10, "use_mid_position_embeddings": False}, extra=11, positions=lambda m: m.embeddings.position_embeddings[0, 1:17].unflatten(0, (4, 4))),
    "HF DPT": hugging("DPTModel", "DPTConfig", "encoder.layer.{}", norm="layernorm", positions=lambda m: m.embeddings.position_embeddings[0, 1:].unflatten(0, (4, 4)), attention="*.attention.attention.weights"),
    "HF Swin": Tried(lambda: hf.SwinForImageClassification(hf.SwinConfig(image_size=32, patch_size=2, embed_dim=8, depths=[2, 2], num_heads=[1, 2], window_size=4, num_labels=5)), "*.attention.weights", blocks=("swin.encoder.layers.0.blocks.0", "swin.encoder.layers.0.blocks.1"), branches=8, grids={256: Patches((16, 16), 0, (2, 2)), 64: Patches((8, 8), 0, (4, 4))}, reads="patches", windows=((16, 4, 0), (16, 4, 2), (8, 4, 0), (8, 4, 2))),
    "HF PVT": Tried(lambda: hf.PvtForImageClassification(hf.PvtConfig(image_size=64, depths=[1, 1, 1, 1], hidden_sizes=[8, 8, 16, 16], num_attention_heads=[1, 1, 2, 2], num_labels=5)), "*.attention.self.weights", (64, 64), blocks=("pvt.encoder.block.0.0",), branches=8, grids={256: Patches((16, 16), 0, (4, 4)), 4: Patches((2, 2), 0, (32, 32)), 5: Patches((2, 2), 1, (32, 32))}),
    "HF SegFormer": Tried(lambda: hf.SegformerForImageClassification(hf.SegformerConfig(depths=[1, 1, 1, 1], hidden_sizes=[8, 8, 16, 16], num_attention_heads=[1, 1, 2, 2], num_labels=5)), "*.attention.weights", (64, 64), blocks=("segformer.stages.0.blocks.0",), branches=8, grids={256: Patches((16, 16), 0, (4, 4)), 4: Patches((2, 2), 0, (32, 32)), 5: Patches((2, 2), 1, (32, 32))}, reads="patches"),
    "HF ViTDet": Tried(lambda: hf.VitDetModel(hf.VitDetConfig(hidden_size=16, num_hidden_layers=2, num_attention_heads=2, image_size=32, pretrain_image_size=32, patch_size=8)), "*.attention.weights", blocks=("encoder.layer.0", "encoder.layer.1"), positions=lambda m: m.embeddings.position_embeddings[0, 1:].unflatten(0, (4, 4))),
}  # fmt: skip


def lucid_positions(extra):
    return lambda m: m.pos_embedding.flatten(0, -2)[extra:].unflatten(0, (4, 4))


LUCIDS = {
    "vit-pytorch ViT": Tried(lambda: vit_pytorch.ViT(**LUCID, mlp_dim=16), "transformer.layers.?.0.weights", give=(4, 4), positions=lucid_positions(1), stream=("transformer.layers.0.0", "transformer.layers.0.1", "transformer.layers.1.0", "transformer.layers.1.1", "transformer.norm"), blocks=("transformer.layers.0.1",)),
    "vit-pytorch SimpleViT": Tried(lambda: vit_pytorch.SimpleViT(**LUCID, mlp_dim=16), "transformer.layers.?.0.weights", give=(4, 4), grids={16: Patches((4, 4), 0)}, stream=("transformer.layers.0.0", "transformer.layers.0.1", "transformer.layers.1.0", "transformer.layers.1.1", "transformer.norm"), blocks=("transformer.layers.0.1",), reads="patches"),
    "vit-pytorch with registers": Tried(lambda: lucid("simple_vit_with_register_tokens").SimpleViT(**LUCID, mlp_dim=16, num_register_tokens=4), "transformer.layers.?.0.weights", give=(4, 4), grids={20: Patches((4, 4), 0)}, stream=("transformer.layers.0.0", "transformer.layers.0.1", "transformer.layers.1.0", "transformer.layers.1.1", "transformer.norm"), blocks=("transformer.layers.0.1",), reads="patches"),
    "vit-pytorch CaiT": Tried(lambda: lucid("cait").CaiT(**LUCID, mlp_dim=16, cls_depth=1), "patch_transformer.layers.?.0.weights", give=(4, 4), positions=lucid_positions(0), branches=6, grids={16: Patches((4, 4), 0)}, others=(2, 3), blocks=("patch_transformer.layers.0.1",), reads="patches"),
    "vit-pytorch DeepViT": Tried(lambda: lucid("deepvit").DeepViT(**LUCID, mlp_dim=16), "transformer.layers.?.0.weights", give=(4, 4), positions=lucid_positions(1), stream=("transformer", "transformer.layers.0.1", "transformer.layers.1.0", "transformer.layers.1.1", "transformer"), blocks=("transformer.layers.0.1",)),
}  # fmt: skip


class First(nn.Module):
    """The first of what a model gives."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, images):
        return self.model(images)[0]


OPEN = rows("transformer.resblocks.{}", "ln_2", "transformer.resblocks.1") | {
    "positions": lambda m: m.positional_embedding[1:].unflatten(0, (4, 4))
}
MONAI = {"positions": lambda m: m.patch_embedding.position_embeddings[0].unflatten(0, (4, 4))}


def open_vit(**options):
    return lambda: clip.VisionTransformer(32, 8, 16, 2, 2, 1.0, output_dim=6, **options)  # fmt: skip


def monai_vit(**options):
    return lambda: monai.ViT(3, 32, 8, 16, 16, 2, 2, spatial_dims=2, **options)


OTHERS = {
    "open_clip CLIP": Tried(open_vit(), end=lambda m, x: m.ln_post(x)[:, 0] @ m.proj, **OPEN),
    "open_clip CLIP, LayerScale, mean": Tried(open_vit(ls_init_value=0.1, pool_type="avg"), end=lambda m, x: m.ln_post(x)[:, 1:].mean(1) @ m.proj, **OPEN, reads="patches"),
    "open_clip CLIP, attention pooling": Tried(open_vit(attentional_pool=True, attn_pooler_heads=2), weights="transformer.*.attn.weights", others=(2,), end=lambda m, x: m.ln_post(m.attn_pool(x))[:, 0] @ m.proj, **OPEN, reads="pool"),
    "MONAI ViT": Tried(monai_vit(), grids={16: Patches((4, 4), 0)}, **MONAI, answer=lambda output: output[0], reads="patches", told=True),
    "MONAI ViT, classifier": Tried(monai_vit(classification=True, num_classes=5), **MONAI, answer=lambda output: output[0]),
    "MONAI ViT, classifier, logits alone": Tried(lambda: First(monai_vit(classification=True, num_classes=5)()), end=lambda m, x: m.model.classification_head(m.model.norm(x)[:, 0]), positions=lambda m: MONAI["positions"](m.model), **rows("model.blocks.{}", "norm2", "model.norm")),
}  # fmt: skip

ARCHITECTURES: dict[str, Tried] = (
    TORCHVISION | VITS_OF_TIMM | HIERARCHIES_OF_TIMM | HUGGING_FACE | LUCIDS | OTHERS
)
