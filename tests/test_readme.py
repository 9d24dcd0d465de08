"""README: its snippets run one after the other as printed, and its links hold on PyPI as well."""

import os
import re
import subprocess
import sys

import matplotlib
import numpy as np
import pytest
from PIL import Image

from book.tools.address import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_snippets_of_readme_run_in_their_order(tmp_path, monkeypatch, capsys):
    matplotlib.use("Agg")
    noise = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(noise).resize((80, 60)).save(tmp_path / "photo.jpg")
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)
    assert len(snippets) == 5 and not any("..." in line.partition("#")[0] for snippet in snippets
                                          for line in snippet.splitlines())  # fmt: skip
    names = {}
    for snippet in snippets:
        # A training takes seconds: a shorter one runs the same code.
        exec(snippet.replace("epochs=10", "epochs=0.5"), names)
    assert names["found"].image.shape == (1, 3, 32, 32)
    assert names["images"].shape == (1, 3, 32, 32)
    assert names["results"].test.pictures == 359
    assert len(capsys.readouterr().out.splitlines()) == 2
    assert not list(tmp_path.glob("runs"))


@pytest.mark.parametrize("url", ["", "https://github.com/someone/a-book"])
def test_on_pypi_links_lead_to_the_repository_or_are_words(url):
    command = [sys.executable, "-m", "hatchling", "metadata", "readme"]
    around = os.environ | {"MINIVIT_REPOSITORY": url}
    shown = subprocess.check_output(command, cwd=ROOT, env=around, text=True)
    links = re.findall(r"\]\(([^)]+)\)", shown)
    assert all(link.startswith("https://") for link in links)
    assert any(link.startswith(f"{url}/actions/") for link in links) == bool(url)
    for path in re.findall(r"/(?:blob|raw)/HEAD/([^)]+)", shown):
        assert (ROOT / path).is_file()
    assert ("/raw/HEAD/" in shown) == ("![" in shown) == bool(url)  # images, not pages about them
