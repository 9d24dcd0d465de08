"""What others may do with the project, and what they are told of it."""

import subprocess
import sys
import tomllib

import yaml

from book.tools.address import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_code_and_weights_are_mit_and_text_and_figures_are_cc_by():
    assert (PROJECT["license"], PROJECT["license-files"]) == ("MIT", ["LICENSE"])
    code, text = [(ROOT / name).read_text() for name in ("LICENSE", "LICENSE-text")]
    assert code.startswith("MIT License\n") and PROJECT["authors"][0]["name"] in code
    assert text.startswith("Attribution 4.0 International\n") and "Section 8 --" in text
    footer = yaml.safe_load((ROOT / "_config.yml").read_text())["html"]["extra_footer"]
    assert "MIT" in footer and "https://creativecommons.org/licenses/by/4.0/" in footer


def test_the_citation_follows_the_formats_schema_and_says_the_same():
    schema = ["--builtin-schema", "vendor.citation-file-format", "CITATION.cff"]
    command = [sys.executable, "-m", "check_jsonschema", *schema]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    said = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert (said["license"], said["keywords"]) == (PROJECT["license"], PROJECT["keywords"])
    assert said["authors"] == PROJECT["authors"]
