"""Options that several commands have, or that take more than a line to say."""

from dataclasses import make_dataclass
from typing import Annotated, get_type_hints

from tyro.conf import arg, create_mutex_group

from vitlab.training.defaults import DEFAULTS
from vitlab.training.recipe import Recipe

ModelName = Annotated[
    str,
    arg(
        metavar="MODEL",
        help="a trained model: a name such as cifar10_vit, the folder of a training run, a "
        ".safetensors file, one of another library (timm:NAME, hf:NAME or torchvision:NAME), or "
        "module:function, a function of yours that returns one",
    ),
]
ImageSize = Annotated[
    int | None,
    arg(
        metavar="PIXELS",
        help="side of the images, to which positions are resampled (None: the model's own)",
    ),
]


def _default(name: str) -> str:
    """The default of a field of the recipe, for each source of data where they differ."""
    if name == "precision":
        return "(default: bfloat16 where it is fast, but not for DIGITS)"
    values = {source: getattr(recipe, name) for source, (_, recipe) in DEFAULTS.items()}
    if len(set(values.values())) == 1:
        return f"(default: {values['FOLDER']})"
    return f"(default: {', '.join(f'{value} for {source}' for source, value in values.items())})"


# The fields of Recipe, each None unless it is given: the defaults depend on the data.
Changes = make_dataclass(
    "Changes",
    [
        (name, Annotated[kind | None, arg(help_behavior_hint=_default(name))], None)
        for name, kind in get_type_hints(Recipe).items()
    ],
    namespace={"__doc__": Recipe.__doc__},
)
ONE_OF = create_mutex_group(required=False)
START = arg(
    name="from",
    metavar="MODEL",
    help="begin with a trained model, given as to `predict`: positions are resampled to the size "
    "of the images, and the head is new unless the classes are the same",
)
TEACHER = arg(
    metavar="MODEL",
    help="a trained model of the same classes, given as to `predict`, whose decisions on the "
    "augmented images count as much as the labels",
)
FREEZE = arg(
    metavar="PARTS",
    help="leave parts as they are: a number, for as many first blocks and all before them; "
    "backbone, for all but the head; or names, such as patch_embedding,positions,blocks.0-3",
)
