"""The tokens that a model reads, of models whose source says which they are."""

import pytest
import torch
import torch.nn.functional as F
import transformers as hf
from torch import nn

from minivit import record
from tests.parity import draw, given
from tests.vitlab.tried.architectures import TIMM
from tests.vitlab.tried.by_hand import relevances, rolled_out, softmaxes
from vitlab import from_huggingface, relevance, rollout

TOKENS, DIM = 20, 8  # a class token, three registers, and 4 x 4 patches
WITHOUT_LABELS = {name: size for name, size in TIMM.items() if name != "num_classes"}


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(DIM, 3 * DIM)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, 2, -1)).permute(2, 0, 3, 1, 4)
        return x + F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


class Pool(nn.Module):
    """Several questions to the tokens, of which one answer is read."""

    def __init__(self, questions, read):
        super().__init__()
        self.questions, self.read = nn.Parameter(torch.zeros(questions, DIM)), read

    def forward(self, x):
        weights = (self.questions[None, None] @ x[:, None].mT).softmax(-1)
        return (weights @ x[:, None])[:, 0, self.read]


class Small(nn.Module):
    """A ViT that answers by what ``reads`` makes of its last tokens."""

    def __init__(self, reads, lead=4):
        super().__init__()
        self.patches = nn.Conv2d(3, DIM, 8, 8)
        self.others = nn.Parameter(torch.zeros(TOKENS - 16, DIM))
        self.blocks = nn.ModuleList([Attention(), Attention()])
        self.pool = reads if isinstance(reads, nn.Module) else None
        self.reads, self.lead = reads, lead
        self.norm, self.head = nn.LayerNorm(DIM), nn.Linear(DIM, 5)

    def forward(self, images):
        x = self.patches(images).flatten(2).mT
        others = self.others.expand(len(x), -1, -1)
        x = torch.cat([others[:, : self.lead], x, others[:, self.lead :]], 1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.reads(self.norm(x)))


def small(reads, lead=4):
    return draw(Small(reads, lead)).eval()


CASES = {
    "class token": (lambda x: x[:, 0], 4, [0]),
    "patches, behind registers": (lambda x: x[:, 4:].mean(1), 4, range(4, 20)),
    "all tokens": (lambda x: x.mean(1), 4, range(20)),
    "class token and patches": (lambda x: x[:, 0] + x[:, 4:].mean(1), 4, [0, *range(4, 20)]),
    "two class tokens": (lambda x: x[:, 0] - x[:, 1], 4, [0, 1]),
    "a class token in the middle": (lambda x: x[:, 2], 4, [2]),
    "a class token behind the patches": (lambda x: x[:, -1], 0, [19]),
    "patches, before registers": (lambda x: x[:, :16].mean(1), 0, range(16)),
}
IMAGES = torch.randn(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))


def agree(model, share, where, **options):
    """Rollout and relevance are those by hand, for these shares [images, tokens] of the tokens."""
    with softmaxes(len(IMAGES)) as seen:
        given(model(IMAGES.clone().requires_grad_())).max(1).values.sum().backward()
    between = [weights for weights in seen if weights.shape[-1] == weights.shape[-2]]
    matrices = rolled_out([weights.detach() for weights in between])[-1], relevances(between)[-1]
    rolled, relevant = ((share[:, None] @ m)[:, 0, where] for m in matrices)
    known = rolled / rolled.sum(1, keepdim=True), relevant - share[:, where]
    for found, row in zip((rollout, relevance), known, strict=True):
        result = found(model, IMAGES, **options)
        torch.testing.assert_close(result.read, share)
        torch.testing.assert_close(result.patches[-1], row, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("head", ["drawn", "zero"])
def test_maps_are_of_the_tokens_that_the_source_reads(name, head):
    """hila-chefer/Transformer-Explainability#16, jacobgil/vit-explain#25, vidarlab/xformer-paired-viz#1."""
    reads, lead, tokens = CASES[name]
    model = small(reads, lead)
    if head == "zero":  # as torchvision makes it
        nn.init.zeros_(model.head.weight)
    share = torch.zeros(2, TOKENS, dtype=torch.float64)
    share[:, [*tokens]] = 1 / len(tokens)
    where = [*range(lead, lead + 16)]
    if head == "drawn":
        agree(model, share, where)
    else:
        torch.testing.assert_close(rollout(model, IMAGES).read, share)
    agree(model, share.flip(1), where, read=[TOKENS - 1 - i for i in tokens])


@pytest.mark.parametrize(("questions", "read"), [(1, 0), (3, 1)])
def test_a_pooling_attention_gives_its_own_weights(questions, read):
    model = small(Pool(questions, read))
    with record(model, "norm") as seen:
        model(IMAGES)
    share = (model.pool.questions[read] @ seen["norm"].detach().mT).softmax(-1).double()
    agree(model, share, [*range(4, 20)])


def test_a_model_whose_reading_cannot_be_found_asks_for_it():
    model = small(CASES["class token"][0])
    model.head = nn.Identity()
    for reads, said in (
        (lambda x: x, "an output without a row for each image"),
        (lambda x: x[:, 0] * 0, "an output whose gradient is zero at all of them"),
    ):
        model.reads = reads
        with pytest.raises(ValueError, match=rf"read=\[...\], which of the 20 tokens.*got {said}"):
            rollout(model, IMAGES)
        assert rollout(model, IMAGES, read=[0]).read[0, 0] == 1
    with pytest.raises(ValueError, match="indices of some of 20 tokens: got"):
        rollout(model, IMAGES, read=[20])


def test_a_model_of_timm_in_a_wrapper_of_hugging_face_is_looked_into():
    """Prisma-Multimodal/ViT-Prisma#163."""
    kind = {"architecture": "vit_base_patch16_224", "num_labels": 5, "model_args": WITHOUT_LABELS}
    model = draw(hf.TimmWrapperForImageClassification(hf.TimmWrapperConfig(**kind))).eval()
    share = torch.eye(17, dtype=torch.float64)[:1].expand(2, -1)
    agree(model, share, [*range(1, 17)])
    with pytest.raises(ValueError, match="TimmWrapper"):
        from_huggingface(model)
