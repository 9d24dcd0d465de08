"""What a training shows while it runs."""

import sys
from typing import Any

from vitlab.extras import extra


class Progress:
    """Shows a bar on standard error, or a line for each epoch where that is not a terminal."""

    def __init__(self, done: int, steps: int, shown: bool) -> None:
        with extra("train"):
            from tqdm import tqdm
        self.shown = shown
        hidden = not (shown and sys.stderr.isatty())
        self.bar = tqdm(
            total=steps, initial=done, unit="step", dynamic_ncols=True, leave=False, disable=hidden
        )

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        self.bar.close()

    def step(self, loss: float, accuracy: float) -> None:
        """Counts a step and shows the means over the epoch so far."""
        self.bar.set_postfix_str(f"loss {loss:.3f}, accuracy {accuracy:.1%}", refresh=False)
        self.bar.update()

    def line(self, line: dict[str, Any], epochs: int) -> None:
        """Prints an epoch's line of the log."""
        if self.shown:
            self.bar.write(
                f"epoch {line['epoch']}/{epochs}  loss {line['loss']:.3f}  "
                f"accuracy {line['accuracy']:.1%}, held out {line['validation']['accuracy']:.1%}  "
                f"{line['images_per_second']:.0f} images/s",
                file=sys.stderr,
            )
