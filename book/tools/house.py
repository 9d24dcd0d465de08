"""How large each part of the project is, and whether its imports go down only.

python -m book.tools.house        exit code 1 above a ceiling, where a test fails, too
"""

import ast
import sys
from collections.abc import Container, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

from book.tools.address import ROOT

# From the ground up: each imports only from those before it.
FLOORS = {
    "": ["minivit", "vitlab", "course", "studies", "book"],
    "minivit": [
        *["hooks", "import_torchvision", "shapes", "stochastic_depth", "listening", "products"],
        *["attention", "patches", "positions", "model", "preprocessing", "recording", "replacing"],
        *["resnet", "vit"],
        *["parts", "torchvision_resnet", "torchvision", "variants", "hybrid", "mixer", "surgery"],
        *["families", "files", "catalogue", "loading"],
    ],
    "vitlab": [
        *["extras", "rendering", "boundary", "calls", "dit"],
        *["krylov", "instruments", "inversion"],
        *["figures", "convert", "data", "training", "claims", "commands"],
    ],
}


class Part(NamedTuple):
    folders: list[str]
    most_lines: int | None = None  # the ceiling; blank lines and comments count
    most_files: int | None = None
    suffixes: tuple[str, ...] = (".py",)


PARTS = {
    "minivit": Part(["minivit"], 3_900, 27),
    "vitlab": Part(["vitlab"], 12_957, 110),
    **{f"- {name}": Part([f"vitlab/{name}"]) for name in FLOORS["vitlab"][5:]},
    "course": Part(["course"], 10_412),
    "studies": Part(["studies"], 6_935),
    "book/_ext, book/tools": Part(["book/_ext", "book/tools"], 4_909),
    "all Python but tests": Part(FLOORS[""], 39_133),
    "tests": Part(["tests"], 23_954),
    "JavaScript, CSS": Part(["book/_static"], 5_943, suffixes=(".js", ".css")),
}
MOST_GUARDS = 0.05  # of the lines of code of minivit and vitlab


def files(part: Part, root: Path = ROOT) -> list[Path]:
    paths = (path for folder in part.folders for path in (root / folder).rglob("*"))
    return [path for path in paths if path.suffix in part.suffixes]


def guards(paths: list[Path]) -> float:
    """The fraction of lines that refuse: each ``raise``, and each ``if`` that only raises.

    Of all lines but blank ones, comments and docstrings.
    """
    code = refusing = 0
    for path in paths:
        text = path.read_text(encoding="utf-8")
        docstrings, refusals = set(), set()
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Expr(ast.Constant(str())):
                    docstrings.update(range(node.lineno, node.end_lineno + 1))
                case (ast.Raise() as last) | ast.If(body=[ast.Raise() as last]):
                    refusals.update(range(node.lineno, last.end_lineno + 1))
        lines = enumerate(text.splitlines(), 1)
        numbers = {i for i, line in lines if line.split("#")[0].strip()} - docstrings
        code, refusing = code + len(numbers), refusing + len(numbers & refusals)
    return refusing / code


def imports(root: Path = ROOT) -> dict[str, set[str]]:
    """The project's modules, and those that each imports, in functions as well."""
    paths = {}
    for path in files(PARTS["all Python but tests"], root):
        parts = path.relative_to(root).with_suffix("").parts
        paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {name: {*_imported(path, paths)} - {name} for name, path in paths.items()}


def _imported(path: Path, modules: Container[str]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in getattr(node, "names", []) if isinstance(alias, ast.alias)]
        if isinstance(node, ast.ImportFrom):  # a package's module, or a name in a module
            members = [f"{node.module}.{name}" for name in names]
            names = [name if name in modules else str(node.module) for name in members]
        yield from (name for name in names if name in modules)


def climbs(graph: dict[str, set[str]]) -> list[str]:
    """The imports of a module from a higher floor, as ``importer > imported``."""
    return [f"{importer} > {imported}" for importer, others in graph.items()
            for imported in sorted(others) if _goes_up(importer, imported)]  # fmt: skip


def _goes_up(importer: str, imported: str) -> bool:
    top, room, *_ = f"{importer}..".split(".")
    other_top, other_room, *_ = f"{imported}..".split(".")
    floors = FLOORS.get(top, [])
    if top != other_top:
        return FLOORS[""].index(other_top) > FLOORS[""].index(top)
    if not floors or not other_room or room in ("", "__main__"):
        return False  # a package's own file imports its modules, and they its version
    return floors.index(other_room) > floors.index(room)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Modules each of which imports the next, the last being the first; none without a circle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1][::-1]
    return []


def rows(root: Path = ROOT) -> Iterator[tuple[str, str, str, bool]]:
    """What is counted, its value, the ceiling, and whether it is below the ceiling."""
    for name, part in PARTS.items():
        paths = files(part, root)
        lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
        ceiling = f"{part.most_lines:,} lines" if part.most_lines else ""
        if part.most_files:
            ceiling += f", {part.most_files} files"
        fits = lines <= (part.most_lines or lines) and len(paths) <= (part.most_files or len(paths))
        yield name, f"{lines:,} lines, {len(paths)} files", ceiling, fits
    share = guards([*files(PARTS["minivit"], root), *files(PARTS["vitlab"], root)])
    fits = share <= MOST_GUARDS
    yield "guards", f"{share:.1%} of code", f"{MOST_GUARDS:.1%}", fits
    graph = imports(root)
    for name, faults in ("imports up", climbs(graph)), ("import circle", circle(graph)):
        yield name, ", ".join(faults) or "none", "none", not faults


def main() -> int:
    table = [*rows()]
    for name, value, ceiling, fits in [("", "now", "ceiling", True), *table]:
        print(f"{name:22} {value:25} {ceiling:24} {'' if fits else 'ABOVE'}".rstrip())
    return not all(fits for *_, fits in table)


if __name__ == "__main__":
    sys.exit(main())
