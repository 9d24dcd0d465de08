"""What a learner sees after a check: one word for the state, and a sentence or two."""

import textwrap
from dataclasses import dataclass
from html import escape
from typing import Literal

WORDS = {"passed": "passed", "failed": "not yet", "open": "not attempted yet"}


@dataclass(frozen=True, repr=False)
class Report:
    """The outcome of one exercise check, shown by the notebook as text or as a small card.

    Args:
        name: The exercise, which is also the name of the learner's function.
        state: "passed", "failed" or "open" (not attempted yet).
        detail: What is probably wrong, or how much was checked; plain text, may be empty.
    """

    name: str
    state: Literal["passed", "failed", "open"]
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return self.state == "passed"

    @property
    def message(self) -> str:
        """The state in words, then the detail: "not yet: nothing is returned."."""
        if self.state == "passed":
            return f"{WORDS[self.state]} ({self.detail})"
        return f"{WORDS[self.state]}: {self.detail}" if self.detail else WORDS[self.state]

    def __repr__(self) -> str:
        return textwrap.fill(f"{self.name}: {self.message}", width=100, break_long_words=False)

    def _repr_html_(self) -> str:
        word, rest = WORDS[self.state], escape(self.message.removeprefix(WORDS[self.state]))
        return (
            f'<div class="check check-{self.state}">'
            f"<code>{escape(self.name)}</code> <strong>{word}</strong>{rest}</div>"
        )
