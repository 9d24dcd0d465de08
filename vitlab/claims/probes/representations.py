"""How alike the layers of a model are, and those of two."""

import torch
from jaxtyping import Float64
from torch import Tensor, nn

from minivit.recording import runnable
from vitlab.claims.probe import CannotAsk, Measured, Subject, probe
from vitlab.claims.probes.parts import attention_of, compared, outputs, row_of_layers
from vitlab.claims.probes.subjects import before_training, groups, second, spread
from vitlab.instruments import CKA, localisation

MANY = 1000  # images without which too few tokens are told apart from their neighbours
POSITIONS = 100  # at most, so that the Gram matrices of as many images fit


def tables(subject: Subject, *models: nn.Module) -> list[Float64[Tensor, "rows columns"]]:
    """CKA of the layers of a model with each other, or with those of a second model.

    Of all groups of images, and of each alone.

    The layers are the first map and every block. The value for all is the estimate by minibatches.
    """
    names = [row_of_layers(model, subject.images) for model in models]
    all_of_them = CKA()
    alone = []
    for some in groups(subject.images):
        found = [
            outputs(model, some, row, subject.batch_size, first=row[0])
            for model, row in zip(models, names, strict=True)
        ]
        one_group = CKA()
        for cka in (all_of_them, one_group):
            cka.update(*found)
        alone.append(one_group.result().values)
    return [all_of_them.result().values, *alone]


def far(values: Float64[Tensor, "layers layers"]) -> float:
    """Mean CKA of the first two layers with the last two."""
    if len(values) < 4:
        raise CannotAsk(f"has {len(values)} layers, so that the first two and the last two overlap")
    return values[:2, -2:].mean().item()


def ends_alike(subject: Subject, first_map: bool) -> Measured:
    """First and last layers of a model with attention, less those of one without."""
    pair = compared(subject)
    start = 0 if first_map else 1
    mine, theirs = (
        [far(table[start:, start:]) for table in tables(subject, model)] for model in pair
    )
    figure, *each = (a - b for a, b in zip(mine, theirs, strict=True))

    def own(other: Subject) -> float:
        return far(tables(other, other.model)[0][start:, start:]) - theirs[0]

    baselines = before_training(subject, own) if subject.model is pair[0] else {}
    return Measured(figure, spread(each), baselines)


@probe(
    "C11",
    "How much more alike are the first and last layers in this model than in a convolutional"
    " network?",
    needs=(second,),
)
def beside_network(subject: Subject) -> Measured:
    """Mean CKA of the first two and the last two layers, the first map among them."""
    _, network = compared(subject)
    maps_of(network, subject.images)
    return ends_alike(subject, first_map=True)


@probe(
    "C20",
    "How much more alike are the first and last blocks in this model than in a Mixer, which has"
    " no attention?",
    needs=(second,),
)
def beside_mixer(subject: Subject) -> Measured:
    """Mean CKA of the first two and the last two blocks."""
    _, mixer = compared(subject)
    if is_on_maps(mixer, subject.images):
        raise CannotAsk("needs a second model that has tokens but no attention, such as a Mixer")
    return ends_alike(subject, first_map=False)


def is_on_maps(model: nn.Module, images: Tensor) -> bool:
    """Whether a model's blocks give feature maps."""
    names = row_of_layers(model, images)
    return outputs(model, images[:1], names[-1:], 1)[names[-1]].ndim == 4


def maps_of(model: nn.Module, images: Tensor) -> None:
    """Refuses a second model that is no convolutional network."""
    if not is_on_maps(model, images):
        raise CannotAsk("needs a convolutional network as the second model")


@probe(
    "C12",
    "Are the layers of a convolutional network's lower half most like this model's lowest "
    "quarter, and those of its upper half most like the next third?",
    needs=(second,),
)
def matches(subject: Subject) -> Measured:
    """Fraction of the network's layers for which the most similar one lies in that range."""
    vit, network = compared(subject)
    maps_of(network, subject.images)
    figure, *each = (in_range(table) for table in tables(subject, vit, network))
    return Measured(figure, spread(each))


def in_range(values: Float64[Tensor, "layers others"]) -> float:
    """The fraction of columns whose largest entry is in the range claimed for their depth."""
    count, others = values.shape
    found = []
    for i, match in enumerate(values.argmax(0).tolist()):
        low, high = (0, 0.25) if i <= (others - 1) / 2 else (0.25, 0.25 + 1 / 3)
        found.append(low <= match / (count - 1) <= high)
    return sum(found) / len(found)


def many(subject: Subject) -> None:
    """Refuses too few images."""
    if len(subject.images) < MANY:
        raise CannotAsk(f"needs {MANY:,} images: the fraction grows with their number")


@probe(
    "C15",
    "How much larger is the fraction of positions that are most like their own patch in this "
    "model's last block than in a convolutional network's?",
    slow=True,
    needs=(second, many),
)
def own_patches(subject: Subject) -> Measured:
    """Fraction of positions, by CKA with the pixels of every patch."""
    pair = compared(subject)
    batches = [some for some in subject.images.split(MANY) if len(some) == MANY]
    shares = []
    for model in pair:
        name = row_of_layers(model, subject.images)[-1]
        if positions(model, subject.images, name) > POSITIONS:
            raise CannotAsk(f"{name!r} has more than {POSITIONS} positions, too many to compare")
        hits = [localisation(model, [some], name).hits.double().mean().item() for some in batches]
        shares.append(torch.tensor(hits))
    each = shares[0] - shares[1]
    return Measured(each.mean().item(), each if len(each) > 1 else None)


def positions(model: nn.Module, images: Tensor, name: str) -> int:
    """How many positions a layer gives."""
    x = outputs(model, images[:1], [name], 1)[name]
    return x.shape[1] if x.ndim == 3 else x[0, 0].numel()


def taken(model: nn.Module, block: str) -> list[str]:
    """The norms and the hidden activations of a block, by their names inside it."""
    within = f"{block}."
    found = []
    for name, module in runnable(model).items():
        kind = type(module)
        activation = "activation" in kind.__module__  # torch's, timm's, Hugging Face's
        hidden = activation and not isinstance(module, nn.Softmax | nn.MultiheadAttention)
        if name.startswith(within) and (hidden or "Norm" in kind.__name__):
            found.append(name.removeprefix(within))
    return found


@probe(
    "C22",
    "How much more alike do this model's blocks look when compared by their outputs than by "
    "their norms or hidden activations?",
)
def where_taken(subject: Subject) -> Measured:
    """Mean CKA between different blocks: of outputs, less of the least alike of the others."""
    model = subject.model
    attention_of(model, subject.images)
    row = row_of_layers(model, subject.images)
    inside = [tap for tap in taken(model, row[0]) if all(tap in taken(model, b) for b in row)]
    if not inside or len(row) < 2:
        raise CannotAsk("its blocks share no names of norms or activations")
    means: dict[str, list[float]] = {}
    for some in groups(subject.images):
        for tap in ("", *inside):
            names = [f"{block}.{tap}" if tap else block for block in row]
            cka = CKA()
            cka.update(outputs(model, some, names, subject.batch_size))
            means.setdefault(tap, []).append(across(cka.result().values))
    least = min(inside, key=lambda tap: sum(means[tap]))
    each = torch.tensor(means[""]) - torch.tensor(means[least])
    return Measured(each.mean().item(), spread(each.tolist()))


def across(values: Float64[Tensor, "layers layers"]) -> float:
    """The mean over pairs of different layers."""
    n = len(values)
    return ((values.sum() - values.diagonal().sum()) / (n * n - n)).item()
