"""Whether a map of what matters is right: patches taken out of images, or put back, by the map."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Float64, Integer
from torch import Tensor, nn

from vitlab.calls import logits
from vitlab.instruments.grids import Grid, rows_and_columns
from vitlab.instruments.running import Images, batches, chosen, evaluating, with_classes


@dataclass(frozen=True, eq=False)
class DeletionCurves:
    """Probability of a class, while patches go or come in the order of their scores."""

    fraction: Float64[Tensor, "steps"]  # of the patches that went, or came, from 0 to 1
    deletion: Float64[Tensor, "batch steps"]  # starts at the image
    insertion: Float64[Tensor, "batch steps"]  # ends at the image

    @property
    def deletion_area(self) -> Float64[Tensor, "batch"]:
        """Area under the deletion curve; the smaller, the better the scores."""
        return torch.trapezoid(self.deletion, self.fraction)

    @property
    def insertion_area(self) -> Float64[Tensor, "batch"]:
        """Area under the insertion curve; the larger, the better the scores."""
        return torch.trapezoid(self.insertion, self.fraction)


def mean_colour(
    images: Float[Tensor, "batch channels height width"],
) -> Float[Tensor, "batch channels height width"]:
    """Each image's mean colour, everywhere."""
    return images.mean((2, 3), keepdim=True).expand_as(images)


def deletion_curves(
    model: nn.Module,
    images: Images,
    scores: Float[Tensor, "batch patches"],
    classes: Integer[Tensor, "batch"] | None = None,
    *,
    grid: Grid,
    instead: Callable[[Tensor], Tensor] = mean_colour,
    steps: int | None = None,
    batch_size: int = 64,
) -> DeletionCurves:
    """Deletes patches from the best scored on, and inserts them, after Petsiuk et al. (2018).

    Scores are right about a model if its answer falls soon when their best patches are deleted, and
    comes soon when they are inserted. Pictures with patches missing are unlike those a model was
    trained on, so compare the areas with those of other scores, random ones among them, and of
    another ``instead``.

    Args:
        model: Any classifier.
        scores: Of the patches, in reading order, as from
            :func:`~vitlab.instruments.relevance.relevance`,
            :func:`~vitlab.instruments.rollout.rollout` or
            :func:`~vitlab.instruments.tokens.token_ablation`. Equal ones go in reading order.
        classes: The class of each image. Default: the most probable.
        grid: Rows and columns of patches.
        instead: What deleted pixels are taken from, as a function of the images.
        steps: How many steps the curves have. Default: one for each patch.
    """
    rows, columns = rows_and_columns(grid)
    patches = rows * columns
    if scores.ndim != 2 or scores.shape[1] != patches or not scores.isfinite().all():
        raise ValueError(
            f"expected finite scores [images, {rows} * {columns} patches]: got {list(scores.shape)}"
        )
    steps = patches if steps is None else steps
    if not 1 <= steps <= patches:
        raise ValueError(f"expected from 1 to {patches} steps, one for each patch: got {steps}")
    # As many patches as went by each step, and the place of each patch in the order.
    counts = torch.linspace(0, patches, steps + 1, dtype=torch.float64).round()
    places = scores.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    _, stream = batches(images, batch_size)
    found = []
    done = 0
    for batch, some in with_classes(stream, classes):
        place = places[done : done + len(batch)].to(batch.device)
        done += len(batch)
        if len(place) != len(batch):
            break
        with evaluating(model):
            empty = instead(batch)
            true = chosen(some, logits(model, batch))[:, None]
            curves = []
            for count in counts.tolist():
                gone = spread(place < count, (rows, columns), batch)
                pictures = torch.cat(
                    [torch.where(gone, empty, batch), torch.where(gone, batch, empty)]
                )
                sure = logits(model, pictures).double().softmax(-1)
                curves.append(sure.gather(1, true.repeat(2, 1)).view(2, -1).cpu())
        found.append(torch.stack(curves, 2))  # [2, b, steps]
    if done != len(scores):
        raise ValueError(f"expected scores for each image: got {len(scores)} for {done} or more")
    deletion, insertion = torch.cat(found, 1)
    return DeletionCurves(counts / patches, deletion, insertion)


def spread(
    patches: Bool[Tensor, "batch patches"], grid: Grid, images: Tensor
) -> Bool[Tensor, "batch 1 height width"]:
    """The pixels of these patches, where the grid divides images in cells as equal as can be."""
    down, right = (
        torch.arange(side, device=images.device) * n // side
        for side, n in zip(images.shape[2:], grid, strict=True)
    )
    return patches.view(-1, 1, *grid)[:, :, down][..., right]
