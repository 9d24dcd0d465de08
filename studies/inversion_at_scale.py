"""Which optimiser inverts torchvision's models, those of the papers?

Each gets the activation alone, a start as in the source, and equally many evaluations. A row of
ViT-L/16 or H/14 takes hours on a CPU: name those that you want.
"""

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import minivit
from minivit.import_torchvision import imported
from minivit.model import Model
from minivit.patches import pair
from minivit.preprocessing import Preprocess
from studies.runner.survey import Survey
from studies.shared.inputs import encoded
from vitlab.data.photographs import photograph
from vitlab.inversion import invert

# Pixels, torchvision's weights, and blocks counted from 1: of ResNet50, the ends of its stages.
MODELS: dict[str, tuple[int, str, tuple[int, ...]]] = {
    "vit_b_32": (224, "IMAGENET1K_V1", (1, 6, 12)),
    "resnet50": (224, "IMAGENET1K_V1", (3, 7, 13, 16)),
    "vit_b_16": (224, "IMAGENET1K_V1", (1, 6, 12)),
    "vit_h_14": (224, "IMAGENET1K_SWAG_LINEAR_V1", (1, 16, 32)),
    "vit_l_16": (512, "IMAGENET1K_SWAG_E2E_V1", (1, 12, 24)),
}
OPTIMISERS = ("gd", "adam", "lbfgs")
EVALUATIONS = 200
SHOWN = 112  # pixels of a stored image


def network(name: str, kind: str) -> Model:
    size, weights, _ = MODELS[name]
    if kind == "trained":
        url = imported().models.get_model_weights(name)[weights].url
        if not Path(torch.hub.get_dir(), "checkpoints", Path(url).name).exists():
            raise FileNotFoundError(f"{Path(url).name} is not in torch.hub's cache")
        return minivit.load(name, weights, image_size=size)
    torch.manual_seed(0)
    model = minivit.create(name, image_size=size).eval()
    model.preprocess = Preprocess(pair(size), resize=pair(size))
    return model


def measure(name: str, block: int, kind: str) -> dict[str, Any]:
    model = network(name, kind)
    images = model.preprocess(photograph("chelsea")[None])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model, images = model.requires_grad_(False).to(device), images.to(device)
    figures: dict[str, Any] = {"pictures": {"original": stored(images, images)}}
    for optimizer in OPTIMISERS:
        # Gradient descent spends 21 of them on the length of its step.
        steps = EVALUATIONS - 21 * (optimizer == "gd")
        way: Any = invert(model, images, f"blocks.{block - 1}", optimizer=optimizer, steps=steps)
        # The evaluation that met the source's criterion, and dB at the end.
        figures[optimizer] = {"met": way.met[0], "psnr": way.psnr.item()}
        figures["pictures"][optimizer] = stored(way.image, images)
    return figures


def stored(image: Tensor, original: Tensor) -> str:
    """One image of a batch as a small WebP in base64, in the range of the original."""
    least, most = original.min(), original.max()
    plain = ((image - least) / (most - least)).clamp(0, 1)[0]
    return encoded(plain.expand(3, -1, -1).permute(1, 2, 0).cpu(), "WEBP", SHOWN, quality=80)


ROWS = {
    f"{name} block {block} {kind}": partial(measure, name, block, kind)
    for name, (_, _, blocks) in MODELS.items()
    for block in blocks
    for kind in ("untrained", "trained")
}
STUDY = Survey("inversion_at_scale", ROWS, digits="")
