"""How far privacy quantities follow the prior: sensitivity by power-scaling."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from edp_bayes.results.query import Audit

__all__ = ["prior_sensitivity"]

THRESHOLD = 0.05
DIGITS = 6


def prior_sensitivity(
    audit: Audit,
    *,
    epsilon: ArrayLike | None = None,
    quantities: Iterable[str] = ("delta", "total_risk"),
    parameters: Iterable[str] | None = None,
    threshold: float = THRESHOLD,
) -> pd.DataFrame:
    """Say how far privacy quantities follow the prior of the distribution of the response.

    The prior, or the likelihood, is raised to a power slightly off 1 by importance weights, and
    the sensitivity is how fast the distribution of a quantity moves (the cumulative Jensen-Shannon
    distance per doubling of the power). Both large: prior and data disagree. Prior large and
    likelihood small: the prior rules.

    Parameters
    ----------
    audit : Audit
        Of any model but a stacked one.
    epsilon : array_like, optional
        Values of the audit's grid; all of them if not given.
    quantities : iterable of str
        Variables of the audit's posterior over epsilon.
    parameters : iterable of str, optional
        Parameters whose prior is scaled; by default those at the top of the model's hierarchy
        (concentration, share, centre, rate, precision, or bandwidth) and every one of a PyMC model
        of your own. The priors of components follow from these, and scaling them too would scale
        the model. The group ``log_prior`` of the audit's tree holds all names.
    threshold : float
        Sensitivity from which the diagnosis speaks.

    Returns
    -------
    DataFrame
        ArviZ's table: one row a quantity and epsilon with columns prior, likelihood and diagnosis.
        A quantity that is the same in every draw has sensitivity 0.

    Raises
    ------
    InputTypeError
        If this is no audit.
    InvalidInputError
        If the audit holds no prior, or an epsilon, quantity or parameter is not in it.

    See Also
    --------
    edp_bayes.Audit.prior_sensitivity : the same from a finished audit
    posterior_predictive_check : whether the model fits the responses
    edp_bayes.models.BaseMeasure : the prior of a component

    Notes
    -----
    The prior of the contributions is learned from all individuals and is not scaled. Under
    `SmoothedBootstrap` both columns are about the bandwidth, whose likelihood is the leave-one-out
    score.

    References
    ----------
    Kallioinen, Paananen, Bürkner and Vehtari (2023), Detecting and diagnosing prior and likelihood
    sensitivity with power-scaling, Statistics and Computing 34, 57.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.gamma(2.0, 0.1, (60, 5))
    >>> response = rng.normal(10.0, 1.0, 60) + contribution.sum(axis=1)
    >>> result = edp.audit(
    ...     edp.Responses.from_arrays(response, response[:, None] - contribution),
    ...     epsilon=[0.1, 0.5],
    ...     model=edp.SmoothedBootstrap(),
    ...     random_seed=1,
    ...     progressbar=False,
    ... )
    >>> prior_sensitivity(result, epsilon=0.1).index.tolist()
    ['delta[0.1]', 'total_risk[0.1]']
    """
    from arviz_stats import psense_summary

    tree = _data(audit, epsilon, quantities, parameters)
    level = validate.positive_number(threshold, "threshold")
    with np.errstate(divide="ignore", invalid="ignore"):
        table: pd.DataFrame = psense_summary(tree, threshold=level, round_to=DIGITS)
    # The distance between two equal points is 0 / 0 there.
    columns = ["prior", "likelihood"]
    table[columns] = table[columns].fillna(0.0)
    return table


def _data(
    audit: Audit,
    epsilon: ArrayLike | None,
    quantities: Iterable[str],
    parameters: Iterable[str] | None,
) -> xr.DataTree:
    """Return the tree that ArviZ scales: chosen quantities, log prior and log likelihood."""
    import xarray as xr

    from edp_bayes.results.query import Audit

    if not isinstance(audit, Audit):
        raise InputTypeError(f"an audit is needed, found {type(audit).__name__}")
    if "log_prior" not in audit.tree.children:
        raise InvalidInputError(
            f"the audit holds no log prior of its model, {audit.settings['model']}; a stacked "
            "model has none: audit each of its models alone; nor has one whose prior PyMC cannot "
            "compute"
        )
    prior = audit.tree["log_prior"].to_dataset()
    posterior = audit.tree["posterior"].to_dataset()
    curves = [str(name) for name, curve in posterior.items() if "epsilon" in curve.dims]
    names = [validate.choice(name, curves, "quantity") for name in _listed(quantities)]
    known = [str(name) for name in prior.data_vars]
    top = json.loads(prior.attrs["hyperparameters"]) if parameters is None else parameters
    scaled = [validate.choice(name, known, "parameter") for name in _listed(top)]
    places = _places(audit.epsilon.to_numpy(), epsilon)
    return xr.DataTree.from_dict(
        {
            "posterior": posterior[names].isel(epsilon=places),
            "log_prior": xr.Dataset({"log_prior": prior[scaled].to_dataarray().sum("variable")}),
            "log_likelihood": audit.tree["log_likelihood"].to_dataset(),
        }
    )


def _listed(names: Iterable[str]) -> list[str]:
    if not isinstance(names, Iterable):
        raise InputTypeError(f"names must be text or a list of it, found {names!r}")
    listed = [names] if isinstance(names, str) else list(names)
    if not listed:
        raise InvalidInputError("at least one name is needed, found none")
    return listed


def _places(grid: np.ndarray, epsilon: ArrayLike | None) -> list[int]:
    """Return where the values asked for stand on the audit's grid."""
    if epsilon is None:
        return list(range(grid.size))
    places = []
    for value in validate.epsilon_grid(epsilon):
        nearest = int(np.abs(grid - value).argmin())
        if not np.isclose(grid[nearest], value, rtol=1e-9, atol=1e-12):
            raise InvalidInputError(
                f"epsilon must be on the audit's grid, {grid.tolist()}; found {value}"
            )
        places.append(nearest)
    return places
