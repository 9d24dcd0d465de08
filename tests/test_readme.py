"""The command's page: its snippets run in their order. README: its links hold on PyPI, and are filled in."""

import os
import re
import subprocess
import sys
from datetime import date

import matplotlib
import numpy as np
import pytest
import yaml
from PIL import Image

from book.tools.address import ROOT

PAGE = (ROOT / "book/command.md").read_text(encoding="utf-8")


def test_the_snippets_of_the_page_run_in_their_order(tmp_path, monkeypatch, capsys):
    matplotlib.use("Agg")
    noise = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
    Image.fromarray(noise).resize((80, 60)).save(tmp_path / "photo.jpg")
    monkeypatch.chdir(tmp_path)
    snippets = re.findall(r"^```python\n(.*?)^```$", PAGE, re.M | re.S)
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


def test_the_workflow_fills_in_the_links_at_the_top_and_the_citation_s_day_and_address(tmp_path):
    steps = yaml.safe_load((ROOT / ".github/workflows/pages.yml").read_text())["jobs"]["launch"][
        "steps"
    ]
    (fill,) = (step["run"] for step in steps if "sed" in step.get("run", ""))
    before = (ROOT / "README.md").read_text(encoding="utf-8")
    (tmp_path / "README.md").write_text(before, encoding="utf-8")
    around = os.environ | {"GITHUB_SERVER_URL": "https://github.com", "PYTHONPATH": str(ROOT)}
    around |= {"GITHUB_REPOSITORY": "Someone/a-book", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    (tmp_path / "python").symlink_to(sys.executable)
    cited = (ROOT / "CITATION.cff").read_text().partition("repository-code:")[0]
    (tmp_path / "CITATION.cff").write_text(cited)
    for _ in range(2):  # once it is published, the day stays
        subprocess.run(["bash", "-e", "-c", fill], cwd=tmp_path, env=around, check=True)
    after = (tmp_path / "README.md").read_text(encoding="utf-8").splitlines()
    (line,) = {*after} - {*before.splitlines()}
    site = "https://someone.github.io/a-book/"
    colab = "https://colab.research.google.com/github/Someone/a-book/blob/launch/book/00_in_an_hour.ipynb"
    assert re.findall(r"\((.*?)\)", line) == [site, colab, f"{site}book/live.html"]
    assert len(after) <= 90

    said = yaml.safe_load((tmp_path / "CITATION.cff").read_text())
    assert (said["url"], said["repository-code"]) == (site, "https://github.com/Someone/a-book")
    assert date.fromisoformat(said["date-released"]) <= date.today()
    # Zenodo asks for these beside title and authors, and reads them here if there is no other file.
    assert {"abstract", "license", "version"} < {*said} and not (ROOT / ".zenodo.json").exists()
    schema = ["--builtin-schema", "vendor.citation-file-format", tmp_path / "CITATION.cff"]
    assert subprocess.run([sys.executable, "-m", "check_jsonschema", *schema]).returncode == 0


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
