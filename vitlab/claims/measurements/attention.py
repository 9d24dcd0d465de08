"""Where attention looks: how far, at itself, and whether rollout says what matters."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Float64
from torch import Tensor

from vitlab.claims.measuring import Measured, Subject, measures, with_mean
from vitlab.extras import extra
from vitlab.instruments import attention_distance, rollout, token_ablation
from vitlab.instruments.layout import attention_weights, layouts, same_tokens

PatchValues = Float[Tensor, "images patches"]
DELETIONS = 60 * 64 * 64**2  # pairs of tokens compared while patches are deleted, as in the book


def heads(subject: Subject) -> tuple[Float64[Tensor, "groups blocks"], ...]:
    """Mean distances of the nearest and the farthest head of each block, in units of uniform
    attention's: of all images, then of groups of them."""
    images = subject.groups()
    results = [attention_distance(subject.model, x, batch_size=subject.batch_size) for x in images]
    parts = [result.pixels / result.uniform[:, None] for result in results]
    table = torch.stack(with_mean(parts, images))  # NaN where a block has fewer heads
    return table.nan_to_num(torch.inf).amin(2), table.nan_to_num(-torch.inf).amax(2)


@measures("C13", untrained=True)
def nearest_head(subject: Subject) -> Measured:
    """Distance of the nearest head of the last block, less that of the first block's."""
    nearest, farthest = heads(subject)
    figures = nearest[:, -1] - nearest[:, 0]
    curves = {"nearest head": nearest[0], "farthest head": farthest[0]}
    return Measured(figures[0].item(), figures[1:].float(), {"uniform attention": 0.0}, curves)


@measures("L20", untrained=True)
def range_of_heads(subject: Subject) -> Measured:
    """Farthest less nearest head of the first block, less the same of the last."""
    nearest, farthest = heads(subject)
    ranges = farthest - nearest
    figures = ranges[:, 0] - ranges[:, -1]
    curves = {"farthest less nearest head": ranges[0]}
    return Measured(figures[0].item(), figures[1:].float(), {"uniform attention": 0.0}, curves)


@measures("C04", untrained=True)
def attention_to_itself(subject: Subject) -> Measured:
    """Mean weight of a token on itself over blocks, heads and tokens."""
    batch_size = subject.batch_size
    at = layouts(subject.model, subject.images[:batch_size])
    parts = [
        torch.stack([w.double().diagonal(dim1=-2, dim2=-1).mean((1, 2)).cpu() for w in batch], 1)
        for batch in attention_weights(subject.model, subject.images.split(batch_size), at)
    ]
    weights = torch.cat(parts)  # [images, blocks]
    even = sum(1 / layout.tokens for layout in at) / len(at)
    curves = {"weight on itself": weights.mean(0)}
    return Measured(weights.mean().item(), weights.mean(1), {"uniform attention": even}, curves)


@measures("V33", slow=True, untrained=True)
def rollout_with_identity(subject: Subject) -> Measured:
    """Rank correlation of rollout with deletion, with the identity less without it."""
    layout = same_tokens(layouts(subject.model, subject.images[:1]))
    images = subject.images[: max(4, DELETIONS // (len(layout.where) * layout.tokens**2))]
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


def rank_correlation(a: PatchValues, b: PatchValues) -> Float64[Tensor, "images"]:
    """Spearman's correlation of each row; 0 where a row is the same everywhere."""
    with extra("audit"):
        from scipy.stats import rankdata
    ranks = (torch.from_numpy(rankdata(x.cpu(), axis=1)) for x in (a, b))
    x, y = (F.normalize(r - r.mean(1, keepdim=True), dim=1) for r in ranks)
    return (x * y).sum(1)
