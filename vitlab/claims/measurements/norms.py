"""Whether patches stand out by the norm of their tokens."""

from vitlab.claims.measuring import Measured, Subject, measures, require
from vitlab.instruments import token_norms

LARGE = 100_000_000  # weights: more than the size Base has


@measures("T02", untrained=True)
def largest_norm(subject: Subject) -> Measured:
    """Largest norm of a patch over the median of its block, in the block where it is largest."""
    found = token_norms(subject.model, subject.images, batch_size=subject.batch_size)
    curves = {"largest norm over the median": found.largest}
    curves[f"patches above {found.factor} medians"] = found.fraction
    return Measured(found.largest.max().item(), curves=curves)


@measures("T01", untrained=True)
def largest_norm_of_small(subject: Subject) -> Measured:
    """The same of a model that is no larger than the size Base."""
    weights = sum(p.numel() for p in subject.model.parameters())
    asked = "this is asked of up to 100 million, and T02 of any"
    require(weights <= LARGE, f"has {weights / 1e6:.0f} million weights: {asked}")
    return largest_norm(subject)
