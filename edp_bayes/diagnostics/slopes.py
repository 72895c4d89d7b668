"""Whether a model allows for what is not known of how contributions follow the regressors."""

from __future__ import annotations

from edp_bayes.diagnostics.checks import Checks, threshold

__all__ = ["check_slopes"]

SLOPES = "slopes"
ADVICE = (
    "Bands are too narrow for them. DirichletProcessMixture() (--model dpm), the default, allows "
    "for it."
)


def check_slopes(taken_for_known: int, individuals: int) -> Checks:
    """Check that no slope is taken for known by which contributions were adjusted.

    Against an adversary contributions are adjusted to the database in question by regression. Where
    a model does not allow for the errors of its slopes, bands are narrower than what is known.

    Parameters
    ----------
    taken_for_known : int
        Of how many individuals the model does not.
    individuals : int
        Of how many.

    Returns
    -------
    Checks
        The check `slopes`, where it fails; its statistic is the number of individuals.

    See Also
    --------
    edp_bayes.Adversary : what is known beside the releases
    withheld : why there is no verdict

    Examples
    --------
    >>> check_slopes(0, 5).checks
    ()
    >>> check_slopes(2, 5)["slopes"].passed
    False
    """
    if not taken_for_known:
        return Checks((), 0.0)
    text = (
        f"What {taken_for_known:,} of {individuals:,} individuals contribute was adjusted to the "
        "database in question by regression, and the model takes the slopes for known"
    )
    return Checks((threshold(SLOPES, float(taken_for_known), False, text, ADVICE),), 0.0)
