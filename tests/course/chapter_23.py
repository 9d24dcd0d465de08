import torch
import torch.nn.functional as F


def training_flops(multiply_adds, images, epochs):
    forward = 2 * multiply_adds
    backward = 2 * forward
    return (forward + backward) * images * epochs


def cost_to_reach(accuracy, accuracies, costs):
    i = int(torch.searchsorted(accuracies, accuracy)) or 1
    share = (accuracy - accuracies[i - 1]) / (accuracies[i] - accuracies[i - 1])
    return costs[i - 1] * (costs[i] / costs[i - 1]) ** share


def power_law(sizes, errors):
    design = torch.stack([torch.ones_like(sizes), -sizes.log2()], 1)
    found = torch.linalg.lstsq(design, errors.log2()[:, None]).solution[:, 0]
    return torch.stack([2 ** found[0], found[1]])


def gru_step(x, h, w_input, w_state, b_input, b_state):
    return torch.gru_cell(x, h, w_input, w_state, b_input, b_state)


def quantise(patches, codebook):
    return torch.stack([min(codebook, key=lambda code: (code - p).norm()) for p in patches])


def contrastive_loss(images, texts, temperature):
    scores = F.cosine_similarity(images[:, None], texts, dim=-1) / temperature
    right = torch.arange(len(images))
    return (F.cross_entropy(scores, right) + F.cross_entropy(scores.mT, right)) / 2


EQUIVALENT = [
    ("power_law", "the sign goes out with the quotient", "x - x.mean() -> x.mean() - x"),
    ("power_law", "a product of vectors", "away @ x -> x @ away", "away @ y -> y @ away"),
    ("gru_step", "of two axes the last is number 1", "b_input).chunk(3, -1 -> b_input).chunk(3, 1", "b_state).chunk(3, -1 -> b_state).chunk(3, 1"),
    ("contrastive_loss", "rows are what normalize takes by default", "texts, dim=1 -> texts", "images, dim=1 -> images"),
]  # fmt: skip
