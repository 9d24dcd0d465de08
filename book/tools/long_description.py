"""README as PyPI shows it; hatchling calls this when it builds.

Relative links get the repository's address, or become plain words, and images go, without one.
"""

import re
import runpy
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

BADGE = re.compile(r"\[!\[[^]]*\]\([^)]*\)\]\([^)]*\)\s*")
IMAGE = re.compile(r"(!\[[^]]*\])\((?!https:)([^)]+)\)\n\n")
LINK = re.compile(r"\[([^]]+)\]\((?!https:)([^)]+)\)")


def alone(readme: str, url: str) -> str:
    """README with links that hold outside of the repository."""
    if not url:
        return LINK.sub(r"\1", IMAGE.sub("", BADGE.sub("", readme)))
    readme = readme.replace("](../../", f"]({url}/")
    readme = IMAGE.sub(rf"\1({url}/raw/HEAD/\2)\n\n", readme)
    return LINK.sub(rf"[\1]({url}/blob/HEAD/\2)", readme)


class LongDescription(MetadataHookInterface):
    def update(self, metadata: dict[str, Any]) -> None:
        root = Path(self.root)
        address = runpy.run_path(str(root / "book/tools/address.py"))  # no `book` to import
        readme = (root / "README.md").read_text(encoding="utf-8")
        text = alone(readme, address["repository"]())
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
