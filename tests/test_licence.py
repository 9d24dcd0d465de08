"""What others may do with the project, and what they are told of it."""

import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_code_and_weights_are_mit_and_text_and_figures_are_cc_by():
    assert (PROJECT["license"], PROJECT["license-files"]) == ("MIT", ["LICENSE"])
    code, text = [(ROOT / name).read_text() for name in ("LICENSE", "LICENSE-text")]
    assert code.startswith("MIT License\n") and PROJECT["authors"][0]["name"] in code
    assert text.startswith("Attribution 4.0 International\n") and "Section 8 --" in text


def test_every_page_says_the_licences():
    footer = yaml.safe_load((ROOT / "_config.yml").read_text())["html"]["extra_footer"]
    assert "MIT" in footer and "https://creativecommons.org/licenses/by/4.0/" in footer
