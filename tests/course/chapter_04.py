import re
from functools import partial, reduce

import torch
import torch.nn.functional as F
from torch import nn
from torchvision.ops import stochastic_depth

from course.mine import fill


def layer_norm(x, weight, bias, eps):
    return F.layer_norm(x, weight.shape, weight, bias, eps)


def block(x, norm1, attention, norm2, mlp):
    """Adds what both branches have written to the stream at the end."""
    heard = attention(norm1(x))
    return heard + mlp(norm2(x + heard)) + x


def adding(x, norm1, attention, norm2, mlp):
    """Writes into the caller's tokens."""
    x += attention(norm1(x))
    x += mlp(norm2(x))
    return x


def ordered_block(x, norm1, attention, norm2, mlp, order):
    y = norm1(x) if order == "parallel" else norm1(attention(x)) + x
    return x + mlp(y) + attention(y) if order == "parallel" else norm2(mlp(y)) + y


def drop_path(branch, rate, training):
    return stochastic_depth(branch, rate, "row", training)


def faulty_drop(branch, rate, training, shape=(1, 1), scale=lambda rate: 1 / (1 - rate)):
    if not training:
        return branch
    return branch * (torch.rand(len(branch), *shape) >= rate) * scale(rate)


def logit_shares(parts, gamma, weight, eps):
    """Shares as the change of a linear map, the divisor frozen."""
    total = parts.sum(0)
    inverse = (total.var(-1, correction=0) + eps).rsqrt()  # [batch]
    centring = torch.eye(len(gamma)) - 1 / len(gamma)
    return torch.einsum("pbd,de,e,ce,b->pbc", parts, centring, gamma, weight, inverse)


class ViT(nn.Module):
    """With torch's own encoder layers, under the names of the table, and attention's biases."""

    def __init__(self, size, patch, channels, dim, depth, heads, classes, hidden=0):
        super().__init__()
        self.embedding = nn.Conv2d(channels, dim, patch, patch)
        self.class_token = nn.Parameter(torch.zeros(dim))
        self.positions = nn.Parameter(torch.zeros(1, (size // patch) ** 2 + 1, dim))
        self.blocks = nn.ModuleList(Layer(dim, heads, hidden or 4 * dim) for _ in range(depth))
        self.norm = nn.LayerNorm(dim, 1e-6)
        self.head = nn.Linear(dim, classes)

    def forward(self, images):
        x = self.embedding(images).flatten(2).mT
        x = F.pad(x, (0, 0, 1, 0)) + self.positions
        x[:, 0] += self.class_token
        for layer in self.blocks:
            x = layer(x)
        return self.head(self.norm(x[:, 0]))


class Layer(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(dim, 1e-6), nn.LayerNorm(dim, 1e-6)
        self.qkv, self.out = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)
        self.up, self.down = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        qkv = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1))
        z = F.scaled_dot_product_attention(*qkv.permute(2, 0, 3, 1, 4))
        x = x + self.out(z.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Nested(ViT):
    """With the package's names for the parts of a block, and without attention's biases."""

    def __init__(self, *sizes):
        super().__init__(*sizes)
        for layer in self.blocks:
            layer.qkv.register_parameter("bias", None)
            layer.attention = nn.ModuleDict({"out": layer.out})
            del layer.out
            layer.out = lambda x, layer=layer: layer.attention["out"](x)


class Shared(ViT):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.blocks = nn.ModuleList([self.blocks[0]] * len(self.blocks))


class More(ViT):
    def __init__(self, *sizes):
        super().__init__(*sizes)
        self.scale = nn.Parameter(torch.ones(1))


class Unready(ViT):
    def forward(self, images):
        return self.heads(images)


THEIRS = (  # parts of names here and in a file
    ("embedding", "patch_embed.proj"),
    ("class_token", "cls_token"),
    ("positions", "pos_embed"),
    ("qkv", "attn.qkv"),
    ("out", "attn.proj"),
    ("up", "mlp.fc1"),
    ("down", "mlp.fc2"),
)


def logits_from_file(images, state, heads, strict=True, error=ValueError, quiet=False, least=1):
    """In a module made for the file, one step replaced by each option."""
    numbers = [int(match[1]) for k in state if (match := re.match(r"blocks\.(\d+)\.", k))]
    depth = max(numbers, default=least - 1) + 1
    own = ViT(2, 1, 1, 4, depth, 1, 2).state_dict()
    names = {name: reduce(lambda name, pair: name.replace(*pair), THEIRS, name) for name in own}
    wrong = sorted({*names.values()} - state.keys())
    wrong += sorted(state.keys() - {*names.values()}) if strict else []
    if wrong:
        raise error("the file does not fit" if quiet else f"{len(wrong)} names: {wrong}")
    dim, channels, patch, _ = state["patch_embed.proj.weight"].shape
    sizes = images.shape[-1], patch, channels, dim, depth, heads, len(state["head.bias"])
    model = ViT(*sizes, hidden=len(state.get("blocks.0.mlp.fc1.bias", ())))
    return fill(model, {name: state[theirs] for name, theirs in names.items()})(images)


ALSO_RIGHT = [("ViT", Nested)]

WRONG = [
    ("ViT", "no parameter blocks.1.norm1.weight", Shared),
    ("ViT", "embedding.weight has shape [10, 3, 1, 1], expected [10, 1, 1, 1]", lambda size, patch, channels, *rest: ViT(size, patch, 3, *rest)),
    ("ViT", "The table has no parameter scale", More),
    ("ViT", 'AttributeError in the line "return self.heads(images)"', Unready),
    ("ViT", "up.weight has shape [48, 24]", lambda *sizes: ViT(*sizes, hidden=2 * sizes[3])),
    ("ViT", "begin with class ViT(nn.Module)", lambda *sizes: F.gelu),
    ("layer_norm", "keepdim=True keeps it", lambda x, *rest: (x - x.mean(-1)) / x.var(-1, correction=0).sqrt()),
    ("block", "x = x + ... instead of x += ...", adding),
    ("drop_path", "That is dropout", partial(faulty_drop, shape=(2, 3))),
    ("drop_path", "it is that of dropping", lambda b, rate, t: faulty_drop(b, 1 - torch.tensor(rate), t)),
    ("drop_path", "not scaled", partial(faulty_drop, scale=lambda rate: 1)),
    ("drop_path", "multiplied by 0.75", partial(faulty_drop, scale=lambda rate: 1 - rate)),
    ("drop_path", "nothing was dropped", lambda branch, rate, training: branch.clone()),
    ("drop_path", "all was dropped", lambda b, rate, t: b * (1 - float(t and rate > 0))),
    ("drop_path", "fraction of 0.4", lambda b, rate, t: drop_path(drop_path(b, rate, t), rate, t)),
    ("logits_from_file", "has head.scale, of no use, is accepted", partial(logits_from_file, strict=False)),
    ("logits_from_file", "lacks blocks.0.norm1.bias is accepted", partial(logits_from_file, least=0)),
    ("logits_from_file", "should be a ValueError", partial(logits_from_file, error=KeyError)),
    ("logits_from_file", "contain that name: got 'the file", partial(logits_from_file, quiet=True)),
]  # fmt: skip

EQUIVALENT = [
    ("layer_norm", "a square has no sign", "(x - mean). -> (mean - x)."),
    ("ordered_block", "the other of two orders comes later in the alphabet", "order == -> order <="),
    ("ViT", "there is one class token", "len(x), -1 -> len(x), 1"),
    ("ViT", "how the weights start is the reader's", "in self.head.parameters(): -> in []:"),
    ("drop_path", "a draw is never equal to the rate", ">= rate -> > rate"),
    ("logit_shares", "with two axes, axis 1 is axis -1", "square().mean(-1 -> square().mean(1"),
    ("logits_from_file", "every name is still in the message", "sorted(wrong) -> wrong"),
    ("logits_from_file", "every name is still in the message", "\"missing, or of no use: {', '.join(sorted(wrong))}\" -> 'missing, or of no use: {sorted(wrong)}'"),
    ("logits_from_file", "a file without blocks lacks all names of any number of them", "default=0 -> default=1"),
    ("logits_from_file", "the two sets have nothing in common", "expected | -> expected ^"),
    ("logits_from_file", "patches are square", "kernel.shape[-1] -> kernel.shape[-2]"),
    ("logits_from_file", "there is one class token", "len(x), -1 -> len(x), 1"),
]  # fmt: skip
