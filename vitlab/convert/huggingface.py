"""Hugging Face's vision transformers, opened by name or as minivit's: the same numbers."""

import math
import re
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from minivit.patches import grid_of, pair
from minivit.preprocessing import Preprocess
from minivit.shapes import Size
from minivit.vit import ViT
from vitlab.convert.loaded_model import LoadedModel, attempt, fetching, library, ready
from vitlab.convert.rotary import from_dinov3
from vitlab.convert.state_dict import convert_state_dict, module_settings

POSITIONS = r"embeddings\.position_embeddings?(\.weight)?$"
# Parts of a key: transformers', ours.
NAMES = {
    r"^(vision_model|vit|deit|dinov2|dinov2_with_registers)\.": "",
    r"^embeddings\.patch_embeddings?\.(projection\.)?": "patch_embedding.projection.",
    rf"^{POSITIONS}": "positions.table",
    r"^embeddings\.(cls_token|class_embedding)$": "class_token",
    r"^embeddings\.(register_tokens|distillation_token)$": "registers",
    r"^(encoder\.)?layers?\.": "blocks.",
    r"^pre_layrnorm\.": "positions.norm.",
    r"^(post_)?layernorm\.": "norm.",
    r"^head\.probe$": "pool.latent",  # SigLIP's pool has the name of our head
    r"^head\.attention\.": "pool.",
    r"^head\.layernorm\.": "pool.norm.",
    r"^head\.mlp\.": "pool.mlp.",
    r"\.(layernorm_before|layer_norm1)\.": ".norm1.",
    r"\.(layernorm_after|layer_norm2)\.": ".norm2.",
    r"\.self_attn\.": ".attention.",
    r"(attention|pool)\.(out|o)_proj\.": r"\1.out.",
    r"attention\.([qkv])_proj\.": r"attention.\1.",
    r"layer_scale1\.lambda1$": "attention.scale",
    r"layer_scale2\.lambda1$": "mlp.scale",
    r"mlp\.gate_proj\.": "mlp.gates.",
    r"mlp\.up_proj\.": "mlp.values.",
    r"mlp\.fc1\.": "mlp.up.",
    r"mlp\.(fc2|down_proj)\.": "mlp.down.",
    r"^(classifier|cls_classifier|visual_projection)\.": "head.",
    r"^distillation_classifier\.": "second_head.",
}
UNREAD = ("mask_token", "pooler.")  # in training by masks alone; of no classifier
# What each class of transformers' gives, in our words.
POOLS = {
    **dict.fromkeys(("ViTModel", "ViTForImageClassification"), "class"),
    **dict.fromkeys(("DeiTModel", "DeiTForImageClassification"), "class"),
    "DeiTForImageClassificationWithTeacher": "class+register",
    **dict.fromkeys(("Dinov2Model", "Dinov2WithRegistersModel"), "class"),
    "Dinov2ForImageClassification": "class+mean",
    "Dinov2WithRegistersForImageClassification": "class+mean",
    **dict.fromkeys(("CLIPVisionModel", "CLIPVisionModelWithProjection"), "class"),
    "SiglipVisionModel": "attention",
    "DINOv3ViTModel": "class",
}
# Of models for text and images, the part for images.
TOWERS = {"CLIPModel": "CLIPVisionModelWithProjection", "SiglipModel": "SiglipVisionModel"}
RESAMPLE = {2: "bilinear", 3: "bicubic"}  # PIL's numbers


def from_huggingface(model: nn.Module, image_size: Size | None = None) -> ViT:
    """Makes minivit's ViT of one of Hugging Face's, equal to it at its image size, or at another,
    to which its positions are resampled as it does so itself::

        theirs = AutoModel.from_pretrained("facebook/dinov2-small")  # of 518 pixels
        model = vitlab.from_huggingface(theirs, image_size=224)

    It takes, with the classes of transformers 5, ViT, DeiT (with a teacher too), DINOv2 with
    registers or without, DINOv3, and the image towers of CLIP and SigLIP. It gives the ``logits``
    of a classifier, the ``image_embeds`` of ``CLIPVisionModelWithProjection``, and without a
    head the ``pooler_output``, but for ViT and DeiT ``last_hidden_state[:, 0]``. How its images
    are prepared, :func:`huggingface_preprocess` reads off its processor.
    """
    kind = type(model).__name__
    config: Any = getattr(model, "config", None)
    if not getattr(config, "vision_use_head", True):
        kind += " without a head"
    if kind not in POOLS:
        timms = "; from_timm takes its timm_model" if hasattr(model, "timm_model") else ""
        raise ValueError(f"expected {', '.join(POOLS)} of transformers: got {kind}{timms}")
    state = {k: v for k, v in model.state_dict().items() if not any(part in k for part in UNREAD)}
    if kind == "DINOv3ViTModel":
        return from_dinov3(model, state, NAMES, image_size).train(model.training)
    size = pair(image_size or config.image_size)
    state |= _positions_at(model, size) if image_size else {}
    settings = module_settings(model) | {"pool": POOLS[kind], "image_size": size}
    ours = convert_state_dict(state, NAMES, **settings)
    if classes := huggingface_classes(model):
        ours.classes = classes
    return ours.train(model.training)


def _positions_at(model: nn.Module, size: tuple[int, int]) -> dict[str, Tensor]:
    """The model's table of positions for images of another size, resampled by its own method."""
    config: Any = model.config
    (key,) = (key for key in model.state_dict() if re.search(POSITIONS, key))
    table = model.get_parameter(key).squeeze(0)
    own, other = (grid_of(each, config.patch_size) for each in (config.image_size, size))
    tokens = torch.empty(1, len(table) - math.prod(own) + math.prod(other), table.shape[1])
    embeddings: Any = next(m for m in model.modules() if hasattr(m, "interpolate_pos_encoding"))
    with torch.no_grad():
        return {key: embeddings.interpolate_pos_encoding(tokens, *size)}


def huggingface_classes(model: Any) -> Sequence[str] | None:
    """The names of a Hugging Face classifier's logits; none of those that were never named."""
    labels: dict[int, str] = model.config.id2label or {}
    unnamed = all(label == f"LABEL_{i}" for i, label in labels.items())
    classifies = "ImageClassification" in type(model).__name__
    return [labels[i] for i in sorted(labels)] if classifies and not unnamed else None


def huggingface_preprocess(processor: Any) -> Preprocess:
    """What an image processor of transformers does, from its settings."""
    resize = {side: n for side, n in dict(processor.size).items() if n is not None}
    crop = dict(processor.crop_size) if processor.do_center_crop else None
    box: Any = [resize.get(side, resize.get("shortest_edge")) for side in ("height", "width")]
    size: Any = [(crop or resize).get(side) for side in ("height", "width")]
    names = ("do_resize", "resample", "do_rescale", "rescale_factor", "do_pad")
    settings = {name: getattr(processor, name, None) for name in names}
    fits = settings["do_resize"] and settings["do_rescale"] and not settings["do_pad"]
    fits = fits and settings["rescale_factor"] in (None, 1 / 255) and "longest_edge" not in resize
    if not fits or None in box + size or settings["resample"] not in RESAMPLE:
        got = settings | {"size": resize, "crop_size": crop}
        raise ValueError(f"expected a resize to one size that scales by 1/255, unpadded: got {got}")
    mean, std = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    if processor.do_normalize:
        mean, std = tuple(processor.image_mean), tuple(processor.image_std)
    resample, stretch = RESAMPLE[settings["resample"]], "shortest_edge" not in resize
    return Preprocess(tuple(size), tuple(box), resample, mean, std, stretch)


def open_huggingface(name: str, untrained: bool) -> LoadedModel:
    """A model of transformers, from a repository of the hub, its cache, or a folder."""
    transformers = library("transformers")
    repository = name.partition(":")[2]
    with fetching(name):
        config = transformers.AutoConfig.from_pretrained(repository)
    kind = _class_of(transformers, config)
    if kind.__name__ in TOWERS.values():
        config = getattr(config, "vision_config", config)

    def build_untrained() -> nn.Module:
        return ready(kind(config) if hasattr(kind, "config_class") else kind.from_config(config))

    with fetching(name):
        model = build_untrained() if untrained else ready(kind.from_pretrained(repository))

    @fetching(name)
    def processor() -> Any:
        return transformers.AutoImageProcessor.from_pretrained(repository)

    preprocess, why = attempt(lambda: huggingface_preprocess(processor()))
    classes = huggingface_classes(model)
    return LoadedModel(model, preprocess, classes, name, None, build_untrained, why)


def _class_of(transformers: Any, config: Any) -> Any:
    """The class that a configuration was saved from, where it is one for images alone."""
    for name in (*(config.architectures or ()), type(config).__name__.replace("Config", "Model")):
        if name in TOWERS or "ForImageClassification" in name or "VisionModel" in name:
            return getattr(transformers, TOWERS.get(name, name))
    return transformers.AutoModel
