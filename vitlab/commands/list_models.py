"""``minivit models``."""

from dataclasses import dataclass

import minivit


@dataclass
class Models:
    """List the models."""

    def run(self, typed: str) -> int:
        print(minivit.models())
        return 0
