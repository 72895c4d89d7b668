"""Defaults that packages share."""

from __future__ import annotations

from edp_bayes.utils import validate

# Of a claim; bands and intervals take ArviZ's.
PROB = 0.95

# Of noise: the smallest scale of Laplace noise, which takes seconds.
NOISE_METHOD = "laplace"

# Kept draws of each chain: of a Markov chain, of a mechanism's, which is quick and mixes slowly,
# where every draw is independent, and of each of the many fits of a plan.
DRAWS = 500
MECHANISM_DRAWS = 1000
INDEPENDENT_DRAWS = 1000
PLANNING_DRAWS = 200

# Of each of the many cells of a table: draws of a chain, warm-up draws, chains, individuals kept.
CELL_DRAWS, CELL_TUNE, CELL_CHAINS, CELL_KEEP = 200, 500, 2, 3

# Warm-up draws of each chain, chains, and individuals whose draws are kept.
TUNE, CHAINS, KEEP = 1000, 4, 10

# Individuals of whom all risks are evaluated exactly; in larger populations most are bounded.
EXACT_UP_TO = 20_000


def default_probability(prob: float | None, name: str = "prob") -> float:
    """Return a probability of intervals, ArviZ's ``stats.ci_prob`` if None."""
    if prob is None:
        from arviz_base import rcParams

        return float(rcParams["stats.ci_prob"])
    return validate.probability(prob, name)
