"""Whether counts vary more between databases than independent entries allow."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from edp_bayes.models.leave_one_out import leave_one_out
from edp_bayes.property_audit.models import ProbabilityDraws
from edp_bayes.utils.arrays import Array

__all__ = ["LEAST_DATABASES", "Overdispersion", "compare"]

# One score a database: fewer of them say nothing about their spread.
LEAST_DATABASES = 5
# By how much the beta-binomial distribution must predict better. Standard errors are no part of the
# rule: the beta-binomial curve is the cautious one, and with 5, 10 and 30 databases of 1,000
# independent entries the rule gave a false alarm in 1, 0 and 1 of 40 simulations.
LEAST_DIFFERENCE = 1.0


@dataclass(frozen=True)
class Overdispersion:
    """Comparison of the beta-binomial distribution with the binomial one, by PSIS-LOO.

    Attributes
    ----------
    difference, error : float
        By how much the beta-binomial distribution predicts better (log predictive density of all
        databases left out), and its standard error.
    unreliable : int
        Counts at which the importance weights of either model have too heavy a tail.
    """

    difference: float
    error: float
    unreliable: int

    @property
    def present(self) -> bool:
        """Whether the beta-binomial distribution predicts better, by more than 1 in log density."""
        return self.difference > LEAST_DIFFERENCE

    @property
    def sentence(self) -> str:
        """The outcome in plain words."""
        numbers = (
            f"difference in log predictive density {self.difference:.2f} (se {self.error:.2f}) "
            f"{'in favour of' if self.present else 'for'} the beta-binomial model by PSIS-LOO"
        )
        if self.unreliable:
            numbers += f", where {self.unreliable} count(s) have a Pareto k that is too large"
        if self.present:
            return (
                "The counts vary more between databases than independent entries allow: "
                f"{numbers}. Entries are dependent, and the curve of exchangeable, dependent "
                "entries is reported."
            )
        return f"No overdispersion: {numbers}."


def compare(binomial: ProbabilityDraws, beta_binomial: ProbabilityDraws) -> Overdispersion:
    """Compare two fits to the same counts.

    Each database, with the counts of all its properties, is left out in turn.

    Parameters
    ----------
    binomial, beta_binomial : ProbabilityDraws
        Both fits.

    Returns
    -------
    Overdispersion

    References
    ----------
    Vehtari, Gelman and Gabry (2017), Practical Bayesian model evaluation using leave-one-out
    cross-validation and WAIC, Statistics and Computing 27, 1413-1432.
    """
    (first, bad_first), (second, bad_second) = (
        _scores(fit.log_likelihood) for fit in (binomial, beta_binomial)
    )
    gain = second - first
    return Overdispersion(
        difference=float(gain.sum()),
        error=float(np.sqrt(gain.size) * gain.std(ddof=1)),
        unreliable=int((bad_first | bad_second).sum()),
    )


def _scores(log_likelihood: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Return the log predictive density of each database left out, and where it is unreliable."""
    found = leave_one_out(log_likelihood.sum(axis=-1))
    return np.asarray(found.elpd_i), np.asarray(found.pareto_k) > float(found.good_k)
