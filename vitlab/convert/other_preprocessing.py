"""How timm and Hugging Face prepare images, as a :class:`~minivit.preprocessing.Preprocess`."""

import math
from collections.abc import Mapping
from typing import Any

from minivit.preprocessing import Preprocess

RESAMPLE = {2: "bilinear", 3: "bicubic"}  # PIL's numbers, which Hugging Face writes


def timms(config: Mapping[str, Any]) -> Preprocess:
    """What ``timm.data.create_transform`` makes of a ``timm.data.resolve_model_data_config``.

    Raises:
        ValueError: It pads an image, or interpolates in another way.
    """
    size = config["input_size"][1:]
    stretch = config["crop_mode"] == "squash"
    if config["crop_mode"] not in ("center", "squash"):
        raise ValueError(f"expected crop_mode center or squash: got {config['crop_mode']}")
    return Preprocess(
        size,
        tuple(math.floor(n / config["crop_pct"]) for n in size),  # type: ignore[arg-type]
        config["interpolation"],
        tuple(config["mean"]),
        tuple(config["std"]),
        stretch,
    )


def huggingfaces(processor: Any) -> Preprocess:
    """What an image processor of transformers does, from its settings.

    Raises:
        ValueError: It resizes in another way, pads, or scales by another number than 1 / 255.
    """
    said = {name: getattr(processor, name, None) for name in ("do_resize", "do_rescale")}
    factor = getattr(processor, "rescale_factor", 1 / 255)
    if not all(said.values()) or getattr(processor, "do_pad", None) or factor != 1 / 255:
        raise ValueError(
            "expected an image processor that resizes, scales by 1/255 and does not pad: got "
            f"{said | {'do_pad': getattr(processor, 'do_pad', None), 'rescale_factor': factor}}"
        )
    resize = {side: n for side, n in dict(processor.size).items() if n is not None}
    sides, shortest = _height_and_width(resize), resize.get("shortest_edge")
    if (sides is None and shortest is None) or len(resize) != (2 if sides else 1):
        raise ValueError(f"expected a size of height and width or a shortest edge: got {resize}")
    box: tuple[int, int] = sides or (shortest, shortest)  # type: ignore[assignment]
    crop = _height_and_width(processor.crop_size) if processor.do_center_crop else None
    if crop is None and shortest is not None:
        raise ValueError("images of many proportions are not cropped to one size")
    if (how := int(processor.resample)) not in RESAMPLE:
        raise ValueError(f"expected bilinear or bicubic interpolation: got PIL's number {how}")
    normal = processor.do_normalize
    mean = tuple(processor.image_mean) if normal else (0.0, 0.0, 0.0)
    std = tuple(processor.image_std) if normal else (1.0, 1.0, 1.0)
    return Preprocess(crop or box, box, RESAMPLE[how], mean, std, stretch=shortest is None)


def _height_and_width(size: Any) -> Any:
    """Both sides, or none."""
    found = dict(size)
    both = found.get("height"), found.get("width")
    return None if None in both else both
