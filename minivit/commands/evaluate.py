"""``minivit eval``."""

from dataclasses import dataclass
from typing import Literal

from tyro.conf import Positional

from minivit.commands.command import Command, load, open_model
from minivit.networks.patches import pair
from minivit.training.defaults import device_of
from minivit.training.evaluate import evaluate


@dataclass(kw_only=True)
class Eval(Command):
    """Score a trained model."""

    checkpoint: Positional[str]  # a .safetensors file, or the folder of a training
    data: str  # as for `train`
    part: Literal["train", "validation", "test"] = "test"  # of the data
    batch_size: int = 256  # images at a time

    def run(self, typed: str) -> int:
        model = open_model(self.checkpoint).to(device_of(self.device))
        config = model.config
        data = load(self.data, size=pair(config.image_size), channels=config.channels)
        if list(model.classes) != list(data.classes):
            raise ValueError(
                f"the model tells {', '.join(model.classes)} apart: {data.name} has "
                f"{', '.join(data.classes)}"
            )
        print(evaluate(model, getattr(data, self.part), self.batch_size))
        return 0
