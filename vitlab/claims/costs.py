"""About how long each probe takes: for the time that an audit still needs."""

from vitlab.claims.probe import CannotAsk, Probe, Subject

# In passes of one image through the model: for each image given, and beside these. Rounded, from
# the seconds in the stored audits of ViTs (book/ledger/models); a test replays them.
ROUND = (1, 0)  # all images once: what is not named below
COSTS: dict[str, tuple[float, float]] = {
    **dict.fromkeys(("C13", "L20", "C04", "H29"), (1, 16)),  # and untrained, on 16 of them
    **dict.fromkeys(("C11", "C12", "C20", "C22", "H32"), (1.5, 0)),
    **dict.fromkeys(("V14", "V17", "V28", "R29", "R31"), (0, 5)),
    **dict.fromkeys(("V30", "V32", "H10", "C05", "V20"), (0, 15)),
    **dict.fromkeys(("R43", "R63"), (0, 30)),
    **dict.fromkeys(("H12", "R12", "L10", "C16", "C17"), (0, 55)),
    "C15": (3, 0),
    "H26": (5, 0),
    "H27": (4, 0),
    "R50": (0, 150),
    "V33": (0, 900),
    "R24": (0, 4000),  # from 1,000 to 19,000, by depth and by how much its blocks stretch
}


def cost(probe: Probe, subject: Subject, quick: bool = False) -> float:
    """Passes of one image that a probe probably takes: none where it will not be asked."""
    if quick and probe.slow:
        return 0.0
    try:
        for need in probe.needs:
            need(subject)
    except CannotAsk:
        return 0.0
    rounds, beside = COSTS.get(probe.claim, ROUND)
    return rounds * len(subject.images) + beside


class Pace:
    """How many seconds a pass takes here, from the probes that gave a figure.

    Where none has, nothing is known: a refusal takes no time.
    """

    def __init__(self) -> None:
        self.passes = self.seconds = 0.0

    def note(self, passes: float, seconds: float) -> None:
        """Takes a probe into account."""
        self.passes += passes
        self.seconds += seconds

    def left(self, passes: float) -> float | None:
        """Seconds that so many passes probably take; None where that is not known yet."""
        return passes * self.seconds / self.passes if self.passes else None
