"""Programs for pages, from the registry npm: what readers of a site need no network for then."""

import base64
import hashlib
import io
import sys
import tarfile
import urllib.request
from collections.abc import Iterable, Iterator
from pathlib import Path

REGISTRY = "https://registry.npmjs.org/"


def files_of(
    package: str, sha512: str, names: Iterable[str], folder: Path = Path(sys.prefix)
) -> Iterator[tuple[str, bytes]]:
    """Files of a package's ``dist``, such as "reveal.js-6.0.2", fetched once; .venv keeps it."""
    name, archive = package.rpartition("-")[0], folder / f"{package}.tgz"
    if not archive.exists():
        with urllib.request.urlopen(f"{REGISTRY}{name}/-/{archive.name}") as answer:
            archive.write_bytes(answer.read())
    data = archive.read_bytes()
    if base64.b64encode(hashlib.sha512(data).digest()).decode() != sha512:
        archive.unlink()
        raise ValueError(f"{package} is not the archive that was tried: its checksum differs")
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        for each in names:
            yield each, files.extractfile(f"package/dist/{each}").read()
