import torch
import torch.nn.functional as F


def bag_of_words(table, captions):
    counts = F.one_hot(captions, len(table))[..., 1:].sum(1).to(table)
    return counts @ table[1:] / counts.sum(1, keepdim=True)


def sigmoid_loss(images, texts, scale, bias):
    scores = scale * F.cosine_similarity(images[:, None], texts, dim=-1) + bias
    return F.binary_cross_entropy_with_logits(
        scores, torch.eye(len(scores)).to(scores), reduction="sum"
    ) / len(scores)


def zero_shot(images, prompts):
    means = torch.stack([sum(p / p.norm() for p in each) for each in prompts])
    return F.cosine_similarity(images[:, None], means, dim=-1)


def modality_gap(images, texts):
    a, b = (sum(v / v.norm() for v in x) / len(x) for x in (images, texts))
    return a - b


def shifted(vectors, gap, part):
    return torch.stack([(v - part * gap) / (v - part * gap).norm() for v in vectors])


def recall_at_k(scores, k):
    places = scores.argsort(1, descending=True)[:, :k]
    return sum(i in row for i, row in enumerate(places.tolist())) / len(scores)


EQUIVALENT = [("bag_of_words", "words have numbers from 1", "captions > 0 -> captions != 0")]
