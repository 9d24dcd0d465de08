"""Prints the cards of claims: ``python -m course.claims R65 R50``."""

import argparse
import sys

from course.claims import card, load
from course.claims.ledger import harvest


def main(arguments: list[str] | None = None) -> int:
    """Prints a card for each id, whatever its case; 2 and one line for an id that is none."""
    parser = argparse.ArgumentParser(prog="python -m course.claims", description=__doc__)
    parser.add_argument("claim", nargs="+", help="an id such as R65")
    parser.add_argument("--exam", action="store_true", help="the verdict's word without reasons")
    options = parser.parse_args(arguments)
    names = [name.upper() for name in options.claim]
    claims, found = load().claims, harvest()
    if unknown := [name for name in names if name not in claims]:
        letters = {name[0]: name for name in claims}  # the last id of each source
        there = ", ".join(f"{letter}01 to {last}" for letter, last in letters.items())
        print(f"no claim {', '.join(unknown)}: there are {there}", file=sys.stderr)
        return 2

    def shown(name: str) -> str:
        whole = card.lines(claims[name], found.get(name))
        return card.text(claims[name], card.without_answer(name) if options.exam else whole)

    print("\n\n".join(map(shown, names)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
