"""A reader's image is prepared in the page as it is in Python."""

import numpy as np
import torch
from PIL import Image

import minivit
from tests.page.conftest import node

RUN = """
return given.map(([image, size, resize, channels]) =>
  minivitImage().prepared(image, size, resize, channels));
"""


def test_resized_cropped_and_grey_as_pil_does_it():
    draws = np.random.default_rng(0)
    given, expected = [], []
    for height, width, size, resize, mean in [
        (8, 8, (8, 8), (8, 8), (0.5,)),
        (90, 61, (8, 8), (8, 8), (0.5,)),
        (37, 200, (32, 32), (32, 32), (0.5,) * 3),
        (20, 11, (32, 32), (36, 36), (0.5,) * 3),
        (64, 65, (9, 12), (10, 13), (0.5,) * 3),
    ]:
        smooth = draws.integers(0, 256, (5, 5, 3), dtype=np.uint8)
        image = Image.fromarray(smooth).resize((width, height), Image.Resampling.BICUBIC)
        data = image.convert("RGBA").tobytes()
        pixels = {"data": list(data), "height": height, "width": width}
        given.append([pixels, size, resize, len(mean)])
        fit = minivit.Preprocess(size, resize, mean=mean, std=mean).fit(image)
        expected.append(fit[0].permute(1, 2, 0).flatten().int())
    found = node(RUN, given, "image")
    for ours, theirs in zip(found, expected, strict=True):
        assert len(set(theirs.tolist())) > 20
        away = (torch.tensor(ours) - theirs).abs()
        assert away.max() <= 1, "PIL's weights are rounded, the page's are not"
