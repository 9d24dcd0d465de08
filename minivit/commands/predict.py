"""``minivit predict``."""

from dataclasses import dataclass
from typing import Annotated

import torch
from tyro.conf import Positional, arg

from minivit.commands.command import Command, complain, open_model
from minivit.data.pictures import open_picture
from minivit.training.defaults import device_of

MANY = arg(metavar="IMAGE ...", help_behavior_hint="(required)")


@dataclass(kw_only=True)
class Predict(Command):
    """Name what images show."""

    pictures: Annotated[Positional[tuple[str, ...]], MANY]  # files of images
    model: str
    """a .safetensors file, the folder of a training, or a name with weights, such as vit_b_32"""
    top: int = 5  # how many classes

    def run(self, typed: str) -> int:
        if not self.pictures:
            raise ValueError("expected the path of at least one image: got none")
        model = open_model(self.model).to(device_of(self.device))
        device = next(model.parameters()).device
        code = 0
        for path in self.pictures:
            try:
                image = model.preprocess(open_picture(path)).to(device)
            except Exception as error:  # broken files raise many kinds
                why = f"{type(error).__name__}: {error}"
                code = complain(f"expected an image at {path}; reading it failed: {why}")
                continue
            with torch.no_grad():
                probabilities = model(image).cpu().double().softmax(1)[0]
            best = probabilities.topk(min(self.top, len(probabilities)))
            print(path)
            for probability, index in zip(best.values.tolist(), best.indices.tolist(), strict=True):
                print(f"  {probability:7.2%}  {model.classes[index]}")
        return code
