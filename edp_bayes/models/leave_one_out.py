"""How well a model predicts a database it has not seen, and the weights that stack models."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils.arrays import Array

__all__ = ["LEAST_DRAWS", "doubtful", "leave_one_out", "stacking_weights"]

# With fewer the tail of the importance ratios has fewer than five, too few to smooth.
LEAST_DRAWS = 25

# Weights below this are a zero of the solver's.
ROUNDING = 1e-9


def leave_one_out(log_likelihood: Array, predictive: Array | None = None) -> Any:
    """Return ArviZ's account of the log predictive density of every database left out.

    Parameters
    ----------
    log_likelihood : ndarray, shape (chain, draw, database)
        Log density of each database under each draw, for Pareto smoothed importance sampling.
    predictive : ndarray, shape (database,), optional
        The log predictive densities themselves, where the model knows them.

    Returns
    -------
    arviz_stats.utils.ELPDDataLOO
        Pointwise, with a Pareto k for each database (zero where the densities are known).

    Raises
    ------
    InvalidInputError
        If there are fewer than 25 draws to weigh.

    Examples
    --------
    >>> import numpy as np
    >>> known = np.log([0.5, 0.25])
    >>> float(leave_one_out(np.zeros((1, 4, 2)), known).elpd.round(3))
    -2.079
    """
    import xarray as xr
    from arviz_stats import loo

    if predictive is not None:
        return _known(predictive, log_likelihood.shape[0] * log_likelihood.shape[1])
    size = log_likelihood.shape[0] * log_likelihood.shape[1]
    if size < LEAST_DRAWS:
        raise InvalidInputError(
            f"PSIS-LOO needs at least {LEAST_DRAWS} draws in all chains, found {size}"
        )
    tree = xr.DataTree.from_dict(
        {
            "posterior": xr.Dataset({"unused": (("chain", "draw"), log_likelihood[..., 0])}),
            "log_likelihood": xr.Dataset(
                {"response": (("chain", "draw", "database"), log_likelihood)}
            ),
        }
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # callers say it in words of our own
        return loo(tree, pointwise=True)


def doubtful(found: Any) -> int:
    """Return the number of databases whose importance weights cannot be trusted."""
    return int((np.asarray(found.pareto_k) > found.good_k).sum())


def stacking_weights(log_density: Array) -> Array:
    """Return the weights under which a mixture of models predicts best.

    The maximiser over the simplex of sum_j log(sum_k w_k p_k(y_j | the other databases)), a concave
    function: Yao, Vehtari, Simpson and Gelman (2018), equation 4 with the logarithmic score.

    Parameters
    ----------
    log_density : ndarray, shape (database, model)
        Log predictive density of each database left out.

    Returns
    -------
    ndarray, shape (model,)

    Examples
    --------
    >>> import numpy as np
    >>> stacking_weights(np.log([[0.5, 0.1], [0.1, 0.5]]))
    array([0.5, 0.5])
    """
    from scipy.optimize import LinearConstraint, minimize

    # Only ratios within a database count, and they do not underflow.
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    size = density.shape[1]
    if size == 1:
        return np.ones(1)

    def loss(weights: Array) -> tuple[float, Array]:
        mixed = np.maximum(density @ weights, 1e-300)
        return -float(np.log(mixed).mean()), -(density / mixed[:, None]).mean(axis=0)

    found = minimize(
        loss,
        np.full(size, 1.0 / size),
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * size,
        constraints=LinearConstraint(np.ones(size), 1.0, 1.0),
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    weights = np.where(found.x > ROUNDING, found.x, 0.0)
    return np.asarray(weights / weights.sum())


def _known(predictive: Array, samples: int) -> Any:
    import xarray as xr
    from arviz_stats.utils import ELPDDataLOO

    n = predictive.size
    return ELPDDataLOO(
        elpd=predictive.sum(),
        se=np.sqrt(n * predictive.var()),
        p=0.0,
        n_samples=samples,
        n_data_points=n,
        scale="log",
        warning=False,
        good_k=0.7,
        elpd_i=xr.DataArray(predictive, dims="database"),
        pareto_k=xr.DataArray(np.zeros(n), dims="database"),
    )
