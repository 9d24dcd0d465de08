"""Prints the cards of claims: ``python -m course.claims R65 [R50 ...]``."""

import argparse

from course.claims import card
from course.claims.ledger import harvest
from course.claims.rows import load


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m course.claims", description=__doc__)
    parser.add_argument("claim", nargs="+", help="such as R65")
    claims, found = load().claims, harvest()
    for name in parser.parse_args().claim:
        if name not in claims:
            parser.error(f"no claim {name!r}: there are {next(iter(claims))} to {[*claims][-1]}")
        claim = claims[name]
        said = card.lines(claim, found[name]) if name in found else [("open", claim.measure)]
        print(card.text(claim, said), end="\n\n")


if __name__ == "__main__":
    main()
