"""Which cue decides where shape and texture disagree?"""

from dataclasses import dataclass

from jaxtyping import Int64
from torch import Tensor

from vitlab.instruments.running import expect


@dataclass(frozen=True)
class CueConflict:
    """How many images with conflicting cues were classified by shape, by texture, by neither."""

    shape: int
    texture: int
    neither: int

    @property
    def share(self) -> float:
        """Decisions by shape among those by shape or texture; NaN where there are none."""
        decided = self.shape + self.texture
        return self.shape / decided if decided else float("nan")


def cue_conflict(
    answers: Int64[Tensor, " batch"],
    shapes: Int64[Tensor, " batch"],
    textures: Int64[Tensor, " batch"],
) -> CueConflict:
    """Counts answers by shape and by texture, after Geirhos et al. (2019).

    Images whose shape and texture belong to one class count for nothing: they show no conflict.
    :func:`vitlab.data.shapes.draw_shapes` with ``typical=0`` draws images with a conflict each.
    """
    conflict = shapes != textures
    expect(conflict.any(), "images whose shape and texture disagree", "none")
    shape = int((answers == shapes)[conflict].sum())
    texture = int((answers == textures)[conflict].sum())
    return CueConflict(shape, texture, int(conflict.sum()) - shape - texture)
