"""The text of a file of the site."""

import codecs
from pathlib import Path


def text_of(file: Path) -> str:
    """A file's text: models of pages are in UTF-16, and begin with its mark; all else in UTF-8."""
    content = file.read_bytes()
    return content.decode("utf-16" if content.startswith(codecs.BOM_UTF16_LE) else "utf-8")
