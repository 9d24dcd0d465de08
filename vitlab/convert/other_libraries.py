"""Models of torchvision, timm and Hugging Face by the names that these libraries give them."""

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from torch import nn

from minivit.catalogue import near
from minivit.import_torchvision import imported
from minivit.loading import fetch
from minivit.preprocessing import Preprocess
from vitlab.convert.opened import Opened, fetching, library, ready
from vitlab.convert.other_preprocessing import huggingfaces, timms

# Of models for text and images, the part for images.
TOWERS = {"CLIPModel": "CLIPVisionModelWithProjection", "SiglipModel": "SiglipVisionModel"}


def open_torchvision(name: str, untrained: bool) -> Opened:
    """A classifier of torchvision, with its best weights."""
    models = imported().models
    model_name = name.partition(":")[2]
    known = models.list_models(module=models)
    if model_name not in known:
        raise ValueError(f"torchvision has no classifier {model_name!r}: {near(model_name, known)}")
    weights = models.get_model_weights(model_name).DEFAULT

    def build() -> nn.Module:
        return ready(models.get_model(model_name, weights=None))

    if untrained:
        model = build()
    else:
        fetch(weights.url)  # into torch.hub's cache, where torchvision looks first
        model = ready(models.get_model(model_name, weights=weights))
    preprocess, why = _tried(lambda: Preprocess.like(weights.transforms()))
    licence = None if untrained else weights.meta.get("license")
    return Opened(model, preprocess, weights.meta["categories"], name, licence, build, why)


def open_timm(name: str, untrained: bool) -> Opened:
    """A model of timm, with the weights of its tag, or its default ones."""
    timm = library("timm")
    model_name = name.partition(":")[2]
    architecture = model_name.partition(".")[0]
    if ":" not in model_name and not timm.is_model(architecture):
        raise ValueError(f"timm has no model {model_name!r}: {_near(architecture, timm)}")

    def build() -> nn.Module:
        return ready(timm.create_model(model_name, pretrained=False))

    with fetching(name), _quiet("timm", "huggingface_hub"):
        model: Any = build() if untrained else ready(timm.create_model(model_name, pretrained=True))
    preprocess, why = _tried(lambda: timms(timm.data.resolve_model_data_config(model)))
    licence = None if untrained else model.pretrained_cfg.get("license")
    return Opened(model, preprocess, timm_classes(model), name, licence, build, why)


def _near(name: str, timm: Any) -> str:
    said = near(name, timm.list_models())
    return said if said.startswith("did") else "timm.list_models() lists them"


def timm_classes(model: Any) -> Sequence[str] | None:
    """The names of a timm model's logits: its own, or those of the ImageNet that has as many."""
    config = model.pretrained_cfg or {}
    names = config.get("label_names")
    if names is None and config.get("num_classes") == model.num_classes:
        from timm.data import ImageNetInfo, infer_imagenet_subset

        subset = infer_imagenet_subset(model)
        names = ImageNetInfo(subset).label_descriptions() if subset else None
    return list(names) if names and len(names) == model.num_classes else None


def open_huggingface(name: str, untrained: bool) -> Opened:
    """A model of transformers, from a repository of the hub, its cache, or a folder.

    Untrained, a type such as ``hf:dinov2`` will do: it has the sizes that are the type's default,
    and needs no file.
    """
    transformers = library("transformers")
    repository = name.partition(":")[2]
    typed = untrained and repository in transformers.CONFIG_MAPPING
    with fetching(name), _quiet("transformers", "huggingface_hub"):
        if typed:
            config = transformers.AutoConfig.for_model(repository)
        else:
            config = transformers.AutoConfig.from_pretrained(repository)
    kind = _kind(transformers, config)
    config = (
        getattr(config, "vision_config", config) if kind.__name__ in TOWERS.values() else config
    )

    def build() -> nn.Module:
        made = kind(config) if hasattr(kind, "config_class") else kind.from_config(config)
        return ready(made)

    with fetching(name), _quiet("transformers", "huggingface_hub"):
        model = build() if untrained else ready(kind.from_pretrained(repository))
    processor = None
    if typed:
        size = config.image_size
        preprocess, why = _tried(lambda: Preprocess(size, size))
    else:
        with fetching(name), _quiet("transformers", "huggingface_hub"):
            processor, why = _tried(
                lambda: transformers.AutoImageProcessor.from_pretrained(repository)
            )
        preprocess, why = _tried(lambda: huggingfaces(processor)) if processor else (None, why)
    classes = huggingface_classes(model)
    return Opened(model, preprocess, classes, name, None, build, why)


def huggingface_classes(model: Any) -> Sequence[str] | None:
    """The names of a Hugging Face classifier's logits; none of those that were never named."""
    named: dict[int, str] = model.config.id2label or {}
    unnamed = all(label == f"LABEL_{i}" for i, label in named.items())
    classifies = "ImageClassification" in type(model).__name__
    return [named[i] for i in sorted(named)] if classifies and not unnamed else None


def _kind(transformers: Any, config: Any) -> Any:
    """The class that a configuration was saved from, where it is one for images alone."""
    for name in config.architectures or ():
        if name in TOWERS or "ForImageClassification" in name or "VisionModel" in name:
            return getattr(transformers, TOWERS.get(name, name))
    for text_too, tower in TOWERS.items():
        if type(config).__name__ == text_too.replace("Model", "Config"):
            return getattr(transformers, tower)
    return transformers.AutoModel


def _tried(make: Callable[[], Any]) -> tuple[Any, str | None]:
    """What a function makes, or why it cannot."""
    try:
        return make(), None
    except (ValueError, OSError, AttributeError, TypeError, KeyError) as error:
        return None, f"how its images are prepared is not known: {error}"


@contextmanager
def _quiet(*names: str) -> Iterator[None]:
    """Without what libraries log: their errors say the same."""
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
