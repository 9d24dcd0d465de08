"""What a file says of a model beside its numbers, and how that is written down."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from minivit.hub.families import FAMILIES, family
from minivit.hub.old_files import current
from minivit.hub.preprocessing import Preprocess
from minivit.networks.model import Config, Removed
from minivit.networks.patches import pair
from minivit.networks.variants import config_of


@dataclass(frozen=True)
class About:
    """What is known of a model beside its numbers; none where it is not known.

    Raises:
        ValueError: The names of the classes are no list of text, or the licence is no text.
    """

    config: Config | None = None
    preprocess: Preprocess | None = None
    classes: Sequence[str] | None = None
    licence: str | None = None
    removed: Removed = ()

    def __post_init__(self) -> None:
        if not isinstance(self.classes, list | tuple | None):
            raise ValueError(f"expected a list of names as classes: got {self.classes!r}")
        if odd := [name for name in self.classes or () if not isinstance(name, str)]:
            raise ValueError(f"expected names as classes: got {odd[0]!r} among them")
        if not isinstance(self.licence, str | None):
            raise ValueError(f"expected text as licence: got {self.licence!r}")
        if not all(isinstance(step, tuple) and len(step) == 2 for step in self.removed):
            raise ValueError(
                f"expected pairs of a part and blocks as removed: got {self.removed!r}"
            )


def said(about: About) -> dict[str, Any]:
    """What is known of a model, in JSON's types."""
    return {
        "family": about.config and family(about.config),
        "config": about.config and fields_of(about.config),
        "preprocess": about.preprocess and asdict(about.preprocess),
        "classes": about.classes,
        "licence": about.licence,
        "removed": about.removed,
    }


def understood(fields: dict[str, Any]) -> About:
    """The way back from :func:`said`, once JSON has been read.

    Raises:
        ValueError: It names a family or a field that does not exist, or a value does not fit.
    """
    parts = {"family", *About.__dataclass_fields__}
    if odd := ", ".join(sorted(fields.keys() - parts)):
        raise ValueError(f"expected {', '.join(sorted(parts))} beside the numbers: got {odd}")
    fields = current(fields)
    configs = {kind.__name__: config for config, kind in FAMILIES.items()}
    name = fields.get("family", "ViT")  # the only family in files that do not say
    if name not in list(configs):
        raise ValueError(f"there is no family {name!r}: expected {' or '.join(configs)}")
    return About(
        _made(config_of if "ViT" in name else configs[name], fields.get("config")),
        _made(Preprocess, fields.get("preprocess")),
        fields.get("classes"),
        fields.get("licence"),
        _tuples(fields.get("removed") or ()),
    )


def _made(kind: Callable[..., Any], fields: Any) -> Any:
    """A dataclass of its fields as JSON has them, or none of none."""
    if fields is None:
        return None
    try:
        return kind(**{k: _tuples(v) for k, v in fields.items()})
    except (TypeError, AttributeError, ArithmeticError, RuntimeError) as error:
        name = "ViTConfig" if kind is config_of else kind.__name__
        raise ValueError(f"expected the fields of a {name}: {error}") from error


def _tuples(value: Any) -> Any:
    """The tuples that JSON wrote as lists."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def fields_of(config: Config) -> dict[str, Any]:
    """A configuration as a dict in which 224 and (224, 224) pixels are the same."""
    return {k: pair(v) if k.endswith("_size") and v else v for k, v in asdict(config).items()}
