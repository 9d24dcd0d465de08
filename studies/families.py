"""The families at equal data, budget and search.

Every family tries the same learning rates in short trainings; the best on the validation part goes
on to a long one. Its number of steps gives each family the time of the ViT's.

The stored ``attention_only`` was created without its MLPs, and so began with other weights than a
ViT from which they are removed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from studies.runner.cost import speeds
from studies.runner.run import Run
from studies.runner.storage import Place
from studies.runner.study import Rows, Study
from studies.shared.small_models import RECIPE, rates

# By name of the checkpoint, the short training, and images a second over the ViT's, as measured by
# interleaved steps on one thread in bfloat16.
FAMILIES = {
    "gap": (Run("vit_32px", {}, RECIPE), 1.0),
    "mixer": (Run("mixer_32px", {}, RECIPE), 1.12),
    "resnet": (Run("resnet_32px", {"width": 32}, RECIPE), 0.62),
    "attention_only": (Run("vit_32px", {}, RECIPE, removed=("mlp",)), 1.5),
    "feedforward": (Run("feedforward_32px", {}, RECIPE), 0.75),
    "alternet": (Run("alternet_32px", {}, RECIPE), 0.46),
    "no_residual": (Run("vit_32px", {}, RECIPE, removed=("residual",)), 1.0),
    "mixer_no_residual": (Run("mixer_32px", {}, RECIPE, removed=("residual",)), 1.12),
    "cls": (Run("vit_32px", {"pool": "class"}, RECIPE), 1.0),
    "no_norm": (Run("vit_32px", {}, RECIPE, removed=("norm",)), 1.0),
    "no_norm_slow": (Run("vit_32px", {}, RECIPE, removed=("norm",)), 1.0),
}
RATES = (3e-4, 1e-3, 3e-3, 1e-2)
STEPS = 2500  # of the ViT: seven epochs, about 18 minutes of one thread


def finals(name: str, best: Run) -> list[Run]:
    """The long training of a family, at the best rate."""
    rate = best.recipe.learning_rate
    if name == "no_norm_slow":  # at the next one: what went well for 300 steps need not for 2,500
        rate = RATES[max(RATES.index(rate) - 1, 0)]
    steps = round(STEPS * FAMILIES[name][1])
    recipe = replace(best.recipe, steps=steps, average=0.998, learning_rate=rate)
    return [replace(best, recipe=recipe)]


def measure(finals: Mapping[str, Sequence[Run]], place: Place) -> Rows:
    """Images a second of each family."""
    found = speeds({name: runs[0] for name, runs in finals.items()})
    return {name: {"images_per_second": speed} for name, speed in found.items()}


STUDY = Study(
    "families", {name: rates(run, RATES) for name, (run, _) in FAMILIES.items()}, finals, measure
)
