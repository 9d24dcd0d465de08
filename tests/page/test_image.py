"""A reader's image is prepared in the page as it is in Python."""

import json
import shutil
import subprocess

import numpy as np
import pytest
import torch
from PIL import Image

import minivit
from tests.page.conftest import ENGINE

RUN = """
const { readFileSync } = require("fs");
const { file, given } = JSON.parse(readFileSync(0));
const images = new Function(`${readFileSync(file)}; return minivitImage()`)();
console.log(JSON.stringify(given.map(([image, size, resize, channels]) =>
  [...images.prepared(image, size, resize, channels)])));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
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
        given.append(
            [{"data": list(data), "height": height, "width": width}, size, resize, len(mean)]
        )
        fit = minivit.Preprocess(size, resize, mean=mean, std=mean).fit(image)
        expected.append(fit[0].permute(1, 2, 0).flatten().int())
    task = json.dumps({"file": str(ENGINE.with_name("image.js")), "given": given})
    done = subprocess.run(["node", "-e", RUN], input=task, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for ours, theirs in zip(json.loads(done.stdout), expected, strict=True):
        assert len(set(theirs.tolist())) > 20
        away = (torch.tensor(ours) - theirs).abs()
        assert away.max() <= 1, "PIL's weights are rounded, the page's are not"
