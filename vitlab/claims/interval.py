"""The 95 % interval of a mean, by Student's t."""

import math

import numpy as np
from jaxtyping import Shaped

from vitlab.extras import extra


def half_width(values: Shaped[np.ndarray, "values"]) -> float:
    """Half the 95 % interval of the mean; zero for a single number."""
    if len(values) == 1:
        return 0.0
    with extra("audit"):
        from scipy.stats import t  # a second to import, needed here alone

    return float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))
