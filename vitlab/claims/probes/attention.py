"""Where attention looks: how far, at itself, and whether rollout says what matters."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64
from torch import Tensor

from vitlab.claims.probe import Measured, Subject, probe
from vitlab.claims.probes.subjects import before_training, figure_of, groups, spread, weighted
from vitlab.instruments import attention_distance, rollout, token_ablation
from vitlab.instruments.layout import attention_weights, layouts, same_tokens
from vitlab.instruments.running import batches

# Pairs of tokens that a head compares while patches are deleted, as in the book: 60 images of 64
# patches.
DELETIONS = 60 * 64 * 64**2


def distances(subject: Subject) -> list[Float64[Tensor, "blocks heads"]]:
    """Mean distances in units of uniform attention's: of all images, then of groups of them."""
    some = groups(subject.images)
    found = [attention_distance(subject.model, x, batch_size=subject.batch_size) for x in some]
    parts = [one.pixels / one.uniform[:, None] for one in found]
    return [weighted(parts, some), *parts]


def nearest(far: Float64[Tensor, "blocks heads"]) -> Float64[Tensor, "blocks"]:
    """The distance of the nearest head of each block, some of which have fewer heads."""
    return far.nan_to_num(torch.inf).amin(1)


def farthest(far: Float64[Tensor, "blocks heads"]) -> Float64[Tensor, "blocks"]:
    """The distance of the farthest head."""
    return far.nan_to_num(-torch.inf).amax(1)


@probe(
    "C13",
    "How much longer is the shortest attention distance among the heads of this model's last"
    " block than among those of its first?",
)
def nearest_head(subject: Subject) -> Measured:
    """In units of the distance of uniform attention."""
    whole, *parts = distances(subject)
    figure, *each = ((nearest(far)[-1] - nearest(far)[0]).item() for far in (whole, *parts))
    return Measured(
        figure,
        spread(each),
        {"uniform attention": 0.0} | before_training(subject, figure_of(nearest_head)),
        {"nearest head": nearest(whole), "farthest head": farthest(whole)},
    )


@probe(
    "L20",
    "How much wider is the range of attention distances among the heads of this model's first"
    " block than among those of its last?",
)
def spread_of_heads(subject: Subject) -> Measured:
    """Farthest less nearest head, in units of the distance of uniform attention."""
    wide = [farthest(far) - nearest(far) for far in distances(subject)]
    figure, *each = ((one[0] - one[-1]).item() for one in wide)
    return Measured(
        figure,
        spread(each),
        {"uniform attention": 0.0} | before_training(subject, figure_of(spread_of_heads)),
        {"farthest less nearest head": wide[0]},
    )


@probe("C04", "How much attention does a token of this model pay to itself?")
def attention_to_itself(subject: Subject) -> Measured:
    """Mean weight over blocks, heads and tokens."""
    first, stream = batches(subject.images, subject.batch_size)
    at = layouts(subject.model, first)
    found = []
    for batch in attention_weights(subject.model, stream, at):
        own = [w.double().diagonal(dim1=-2, dim2=-1).mean((1, 2)).cpu() for w in batch]
        found.append(torch.stack(own, 1))  # [b, blocks]
    weights = torch.cat(found)
    even = sum(1 / layout.tokens for layout in at) / len(at)
    baselines = before_training(subject, figure_of(attention_to_itself))
    return Measured(
        weights.mean().item(),
        weights.mean(1),
        {"uniform attention": even} | baselines,
        {"weight on itself": weights.mean(0)},
    )


@probe(
    "V33",
    "How much better does rollout of this model's attention match the effect of deleting patches"
    " with the identity term than without it?",
    slow=True,
)
def rollout_with_identity(subject: Subject) -> Measured:
    """Rank correlation with the change of the answer, with the identity less without it.

    Deleting takes a pass for each patch, so for large models a few images must do.
    """
    first, _ = batches(subject.images, 1)
    one = same_tokens(layouts(subject.model, first))
    images = subject.images[: max(4, DELETIONS // (len(one.where) * one.tokens**2))]
    changes = token_ablation(subject.model, images, batch_size=subject.batch_size).abs()
    with_it, without = (
        rollout(subject.model, images, identity=share, batch_size=subject.batch_size).patches[-1]
        for share in (0.5, 0.0)
    )
    gain, of_another = (
        rank_correlation(with_it, target) - rank_correlation(without, target)
        for target in (changes, changes.roll(1, 0))
    )
    baselines = {"what deletions do to another image": of_another.mean().item()}
    return Measured(gain.mean().item(), gain, baselines if len(images) > 1 else {})


def rank_correlation(
    a: Float[Tensor, "images patches"], b: Float[Tensor, "images patches"]
) -> Float64[Tensor, "images"]:
    """Spearman's correlation of each row; 0 where a row is the same everywhere."""
    x, y = (F.normalize(r - r.mean(1, keepdim=True), dim=1) for r in (_ranks(a), _ranks(b)))
    return (x * y).sum(1)


def _ranks(x: Float[Tensor, "images patches"]) -> Float64[Tensor, "images patches"]:
    """The rank of each entry in its row; equal ones share the mean of theirs."""
    above, same = (compare(x[:, :, None], x[:, None]).sum(2) for compare in (torch.gt, torch.eq))
    return above.double() + (same + 1) / 2
