"""The ONNX file of a page, made of a small ViT."""

import onnxruntime
import torch

import minivit
from book.tools.large_model import Inside, to_bytes


def test_a_vit_in_8_bits_gives_its_tokens_and_weights_of_every_block():
    torch.manual_seed(0)
    model = minivit.ViT(minivit.ViTConfig(32, 8, classes=3, dim=24, depth=2, heads=3))
    model.preprocess = minivit.Preprocess((32, 32), resize=(32, 32))
    pixels = torch.randint(256, (32, 32, 3), dtype=torch.uint8)
    tokens, weights = Inside(model.eval())(pixels)
    session = onnxruntime.InferenceSession(to_bytes(Inside(model), pixels))
    found, looks = map(torch.from_numpy, session.run(None, {"pixels": pixels.numpy()}))
    assert tokens.shape == (2, 17, 24) and weights.shape == (2, 3, 17, 17)
    torch.testing.assert_close(looks, weights, atol=0.02, rtol=0)
    assert torch.cosine_similarity(found, tokens, dim=-1).min() > 0.99
    with torch.no_grad():
        logits = model(model.preprocess(pixels.permute(2, 0, 1)[None]))
    torch.testing.assert_close(model.head(tokens[-1, 0]), logits[0])
