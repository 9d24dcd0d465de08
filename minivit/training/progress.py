"""What a training shows while it runs: a bar in a terminal, elsewhere a line an epoch."""

import sys
from typing import Any

from minivit._extras import extra


class Progress:
    """A bar with loss, accuracy and the time left, on standard error; used as a context.

    Args:
        done: Steps that were taken before.
        steps: Steps in all.
        shown: False to show nothing at all.
    """

    def __init__(self, done: int, steps: int, shown: bool) -> None:
        with extra("train"):
            from tqdm import tqdm
        terminal = sys.stderr.isatty()
        self.shown = shown
        self.bar = tqdm(
            total=steps, initial=done, unit="step", dynamic_ncols=True, leave=False,
            disable=not (shown and terminal),
        )  # fmt: skip

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def step(self, loss: float, accuracy: float) -> None:
        """Says that a step was taken, with the means over the epoch so far."""
        self.bar.set_postfix_str(f"loss {loss:.3f}, accuracy {accuracy:.1%}", refresh=False)
        self.bar.update()

    def line(self, line: dict[str, Any], epochs: int) -> None:
        """Prints an epoch's line of the log."""
        if self.shown:
            self.bar.write(
                f"epoch {line['epoch']}/{epochs}  loss {line['loss']:.3f}  "
                f"accuracy {line['accuracy']:.1%}, held out {line['validation']['accuracy']:.1%}  "
                f"{line['images_per_second']:.0f} pictures/s",
                file=sys.stderr,
            )
