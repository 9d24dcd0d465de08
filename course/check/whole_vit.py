"""Exercise of chapter 04: a whole vision transformer from the tensors of a file."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from course.check.attempt import Attempt, NotYet, normal_draws
from course.check.exercise import exercise

CHAPTER = "04_encoder"
BATCH, SIDE, PATCH, DIM, HEADS, HIDDEN, CLASSES = 5, 8, 2, 24, 4, 20, 7
EPS = "The eps of the norms is 1e-5, torch's. It should be 1e-6."
State = dict[str, Tensor]


def file_of(depth: int, seed: int) -> State:
    """A random file: every name of the exercise's table."""
    normal = normal_draws(seed)
    state = {"cls_token": normal(1, 1, DIM), "pos_embed": normal(1, 1 + (SIDE // PATCH) ** 2, DIM)}
    shapes = {"patch_embed.proj": (DIM, 3, PATCH, PATCH), "norm": (DIM,), "head": (CLASSES, DIM)}
    for i in range(depth):
        shapes |= {
            f"blocks.{i}.norm1": (DIM,),
            f"blocks.{i}.attn.qkv": (3 * DIM, DIM),
            f"blocks.{i}.attn.proj": (DIM, DIM),
            f"blocks.{i}.norm2": (DIM,),
            f"blocks.{i}.mlp.fc1": (HIDDEN, DIM),
            f"blocks.{i}.mlp.fc2": (DIM, HIDDEN),
        }
    for name, shape in shapes.items():
        weight = normal(*shape)
        state[f"{name}.weight"] = weight / weight[0].numel() ** 0.5 + (len(shape) == 1)
        state[f"{name}.bias"] = normal(shape[0]) / 2
    return state


def silenced(state: State, *branches: str) -> State:
    """A copy in which these branches add nothing: their last maps are zero."""
    last = tuple(f".{branch}.{kind}" for branch in branches for kind in ("weight", "bias"))
    return {name: 0 * t if name.endswith(last) else t for name, t in state.items()}


def forward(
    images: Tensor,
    state: State,
    *,
    eps: float = 1e-6,
    skip: str = "",
    width: int = DIM // HEADS,
    divisor: float = math.sqrt(DIM // HEADS),
    gelu: str = "none",
    residual: bool = True,
    read: str = "class",
    blocks: int | None = None,
) -> Tensor:
    """The logits, with what goes wrong most as arguments; ``skip`` names a norm left out."""

    def linear(x: Tensor, name: str) -> Tensor:
        return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]

    def norm(x: Tensor, name: str) -> Tensor:
        if skip and name.endswith(skip):
            return x
        x = x - x.mean(-1, keepdim=True)
        x = x / (x.square().mean(-1, keepdim=True) + eps).sqrt()
        return x * state[f"{name}.weight"] + state[f"{name}.bias"]

    pixels = F.unfold(images, PATCH, stride=PATCH).mT  # [batch, patches, 3 * patch * patch]
    embedding = state["patch_embed.proj.weight"].flatten(1)
    x = pixels @ embedding.T + state["patch_embed.proj.bias"]
    x = torch.cat([state["cls_token"].expand(len(x), 1, DIM), x], 1) + state["pos_embed"]
    depth = len({name.split(".")[1] for name in state if name.startswith("blocks.")})
    for i in range(depth if blocks is None else blocks):
        q, k, v = linear(norm(x, f"blocks.{i}.norm1"), f"blocks.{i}.attn.qkv").split(DIM, -1)
        heads = []
        for start in range(0, DIM, width):
            part = slice(start, start + width)
            weights = (q[..., part] @ k[..., part].mT / divisor).softmax(-1)
            heads.append(weights @ v[..., part])
        x = residual * x + linear(torch.cat(heads, -1), f"blocks.{i}.attn.proj")
        hidden = linear(norm(x, f"blocks.{i}.norm2"), f"blocks.{i}.mlp.fc1")
        x = residual * x + linear(F.gelu(hidden, approximate=gelu), f"blocks.{i}.mlp.fc2")
    x = norm(x, "norm")
    pooled = {"class": x[:, 0], "mean": x.mean(1), "last": x[:, -1]}[read]
    return linear(pooled, "head")


@exercise(CHAPTER)
def logits_from_file(attempt: Attempt) -> None:
    """images [batch, 3, side, side], state (timm's names), heads -> [batch, classes]."""
    shape = dict(batch=BATCH, classes=CLASSES)
    images = normal_draws(seed=10)(BATCH, 3, SIDE, SIDE)
    state = file_of(depth=1, seed=11)

    quiet = silenced(state, "attn.proj", "mlp.fc2")
    no_place = quiet | {"pos_embed": 0 * quiet["pos_embed"]}
    attempt.expect_close(
        attempt(images, quiet, HEADS, shape=shape),
        forward(images, quiet),
        "With branches that add nothing, the logits should be those of the class token plus its "
        "position, normed and read by the head.",
        mistakes={
            "The last norm is missing.": forward(images, quiet, skip="norm"),
            "The head reads the mean of all tokens. It should read the class token.": forward(
                images, quiet, read="mean"
            ),
            "The head reads the last token. The class token is the first.": forward(
                images, quiet, read="last"
            ),
            "The class token's position is not added.": forward(images, no_place),
            "The stream is lost: each branch should be added to it.": forward(
                images, quiet, residual=False
            ),
        },
    )

    quiet = silenced(state, "mlp.fc2")
    no_place = quiet | {"pos_embed": quiet["pos_embed"].clone()}
    no_place["pos_embed"][:, 1:] = 0
    one_head = forward(images, quiet, width=DIM, divisor=math.sqrt(DIM))
    attempt.expect_close(
        attempt(images, quiet, HEADS, shape=shape),
        forward(images, quiet),
        "With an MLP that adds nothing the logits are wrong: look at the patches and at attention.",
        mistakes={
            "All columns act as one head.": one_head,
            "Scores should be divided by the root of a head's width, not of the token's.": forward(
                images, quiet, divisor=math.sqrt(DIM)
            ),
            "The scores are not scaled.": forward(images, quiet, divisor=1),
            "Attention reads the stream without its norm.": forward(images, quiet, skip="norm1"),
            "The patches have no positions.": forward(images, no_place),
            EPS: forward(images, quiet, eps=1e-5),  # little, but already more than the tolerance
        },
    )

    attempt.expect_close(
        attempt(images, state, HEADS, shape=shape),
        forward(images, state),
        "With the MLP the logits are wrong.",
        mistakes={
            "The GELU is the approximation by tanh. The exact one is x times the normal "
            "distribution function.": forward(images, state, gelu="tanh"),
            "The MLP reads the stream without its norm.": forward(images, state, skip="norm2"),
        },
    )

    # Tokens so small that eps counts: their variance is about that of 1e-6.
    faint = {"cls_token", "pos_embed", "patch_embed.proj.weight", "patch_embed.proj.bias"}
    small = {name: 1e-3 * t if name in faint else t for name, t in state.items()}
    attempt.expect_close(
        attempt(images, small, HEADS, shape=shape),
        forward(images, small),
        "For faint tokens the logits are wrong. Is the eps of the norms 1e-6?",
        mistakes={EPS: forward(images, small, eps=1e-5)},
    )

    deep = file_of(depth=12, seed=12)
    attempt.expect_close(
        attempt(images, deep, HEADS, shape=shape),
        forward(images, deep),
        "With 12 blocks the logits are wrong. Does each block run once, in order, with its own "
        "weights?",
        mistakes={
            f"Of 12 blocks only {n} run. Their number is one more than the largest number in a "
            "name, which may have two digits.": forward(images, deep, blocks=n)
            for n in (1, 2, 9, 10, 11)
        },
    )
    refuses(attempt, images)


def refuses(attempt: Attempt, images: Tensor) -> None:
    """Each name that is missing, and names of no use, must be named in a ValueError."""
    state = file_of(depth=3, seed=13)
    files = [(name, {k: t for k, t in state.items() if k != name}) for name in state]
    extra = ("head.scale", "blocks.1.attn.qkv.scale", "blocks.norm.weight", "dist_token")
    files += [(name, state | {name: torch.ones(1)}) for name in extra]
    # A whole block is gone; all blocks are gone.
    for start, name in (("blocks.1.", "blocks.1.norm1.bias"), ("blocks.", "blocks.0.norm1.bias")):
        files.append((name, {k: t for k, t in state.items() if not k.startswith(start)}))
    for name, broken in files:
        what = f"has {name}, of no use," if name in extra else f"lacks {name}"
        try:
            attempt(images, broken, HEADS, shape=dict(batch=BATCH, classes=CLASSES))
        except NotYet as reason:
            error = reason.__cause__
            if error is None:
                raise
            attempt.expect(
                type(error) is ValueError,
                f"For a file that {what} a {type(error).__name__} was raised; it should be a "
                "ValueError that contains the name.",
            )
            attempt.expect(
                name in str(error),
                f"For a file that {what} the ValueError should contain that name: got '{error}'.",
            )
        else:
            raise NotYet(f"A file that {what} is accepted. It should be refused.")
