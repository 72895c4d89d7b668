"""Epsilon and what it means: the interval that the noise leaves around the true answer.

The Laplace mechanism of privacy epsilon keeps a count c within the relative width w, that is
within w c of the truth, with probability `level` = 1 - exp(-epsilon w c) (Naldi and D'Acquisto
2015, equation 10). `epsilon`, `level_from_epsilon` and `width_from_epsilon` solve this for one
quantity; `posterior` carries a posterior of the true answer through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import xarray as xr

__all__ = [
    "count_curves",
    "epsilon",
    "iso_curves",
    "level_curves",
    "level_from_epsilon",
    "posterior",
    "width_curves",
    "width_from_epsilon",
]

WIDTHS = tuple(np.linspace(0.01, 0.5, 50))
LEVELS = tuple(np.linspace(0.02, 0.98, 49))
COUNTS = tuple(np.geomspace(10.0, 1000.0, 61))


def epsilon(
    count: ArrayLike, width: ArrayLike, level: ArrayLike, *, sensitivity: float = 1.0
) -> Any:
    """Return the epsilon whose Laplace noise keeps the answer within an interval.

    Parameters
    ----------
    count : array_like
        True answer, above zero.
    width : array_like
        Half-width of the interval relative to the answer, above zero.
    level : array_like
        Probability that the noisy answer lies in the interval, strictly between 0 and 1.
    sensitivity : float
        Largest effect of one individual on the answer: 1 for counts.

    Returns
    -------
    float or ndarray
        -sensitivity log(1 - level) / (width count), broadcast.

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument is out of its range or not numeric, or the shapes do not broadcast.

    See Also
    --------
    width_from_epsilon : the width that an epsilon implies
    level_from_epsilon : the level that an epsilon implies
    posterior : epsilon, level or width with a posterior

    References
    ----------
    Naldi and D'Acquisto (2015), Differential privacy: an estimation theory-based method for
    choosing epsilon, equation 10. Their example prints 0.08 without the minus sign.

    Examples
    --------
    >>> round(epsilon(100, 0.2, 0.8), 7)
    0.0804719
    """
    c, w, p = _broadcast(
        count=_positive(count, "count"), width=_positive(width, "width"), level=_levels(level)
    )
    return _plain(-_sensitivity(sensitivity) * np.log1p(-p) / (w * c))


def level_from_epsilon(
    count: ArrayLike, width: ArrayLike, *, epsilon: ArrayLike, sensitivity: float = 1.0
) -> Any:
    """Return the probability that the noisy answer lies within the interval.

    Parameters
    ----------
    count, width, sensitivity
        As for `epsilon`.
    epsilon : array_like
        Above zero.

    Returns
    -------
    float or ndarray
        1 - exp(-epsilon width count / sensitivity), broadcast.

    Raises
    ------
    InvalidInputError, InputTypeError
        As for `epsilon`.

    See Also
    --------
    epsilon : epsilon from width and level
    width_from_epsilon : the width that an epsilon implies
    edp_bayes.Audit.interval_level : the level from an audit's draws

    Examples
    --------
    >>> round(level_from_epsilon(100, 0.2, epsilon=0.0804719), 6)
    0.8
    """
    e, c, w = _broadcast(
        epsilon=_positive(epsilon, "epsilon"),
        count=_positive(count, "count"),
        width=_positive(width, "width"),
    )
    return _plain(-np.expm1(-e * w * c / _sensitivity(sensitivity)))


def width_from_epsilon(
    count: ArrayLike, level: ArrayLike, *, epsilon: ArrayLike, sensitivity: float = 1.0
) -> Any:
    """Return the relative half-width of the interval that holds the answer at a level.

    Parameters
    ----------
    count, level, sensitivity
        As for `epsilon`.
    epsilon : array_like
        Above zero.

    Returns
    -------
    float or ndarray
        -sensitivity log(1 - level) / (epsilon count), broadcast.

    Raises
    ------
    InvalidInputError, InputTypeError
        As for `epsilon`.

    See Also
    --------
    epsilon : epsilon from width and level
    level_from_epsilon : the level that an epsilon implies

    Examples
    --------
    >>> round(width_from_epsilon(100, 0.8, epsilon=0.0804719), 6)
    0.2
    """
    e, c, p = _broadcast(
        epsilon=_positive(epsilon, "epsilon"), count=_positive(count, "count"), level=_levels(level)
    )
    return _plain(-_sensitivity(sensitivity) * np.log1p(-p) / (e * c))


def iso_curves(
    *,
    epsilon: ArrayLike = (0.05, 0.1, 0.2, 0.5),
    count: float = 100.0,
    width: ArrayLike = WIDTHS,
    sensitivity: float = 1.0,
) -> xr.DataArray:
    """Return the curves of equal epsilon: the level at each width.

    Parameters
    ----------
    epsilon, width : array_like
        One curve an epsilon, over the widths.
    count, sensitivity : float
        As for `epsilon`.

    Returns
    -------
    DataArray
        interval_level, dims (epsilon, width).

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument is out of its range.

    See Also
    --------
    level_from_epsilon : the level that an epsilon implies
    edp_bayes.plots.plot_iso_curves : the level of each width, a curve an epsilon

    Examples
    --------
    >>> iso_curves(epsilon=[0.1], width=[0.1, 0.2]).dims
    ('epsilon', 'width')
    """
    e, w = _vector(epsilon, "epsilon"), _vector(width, "width")
    values = level_from_epsilon(count, w, epsilon=e[:, None], sensitivity=sensitivity)
    axes = {"epsilon": e, "width": w}
    return _curves("interval_level", values, axes, count=count, sensitivity=sensitivity)


def count_curves(
    *,
    count: ArrayLike = COUNTS,
    width: ArrayLike = (0.05, 0.1, 0.2),
    level: float = 0.8,
    sensitivity: float = 1.0,
) -> xr.DataArray:
    """Return epsilon against the true count, a curve a width.

    Parameters
    ----------
    count, width : array_like
        One curve a width, over the counts.
    level, sensitivity : float
        As for `epsilon`.

    Returns
    -------
    DataArray
        interval_epsilon, dims (width, count).

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument is out of its range.

    See Also
    --------
    epsilon : epsilon from width and level
    edp_bayes.plots.plot_count_curves : epsilon against the true count

    Examples
    --------
    >>> round(float(count_curves(count=[100], width=[0.2])[0, 0]), 7)
    0.0804719
    """
    c, w = _vector(count, "count"), _vector(width, "width")
    values = epsilon(c, w[:, None], level, sensitivity=sensitivity)
    axes = {"width": w, "count": c}
    return _curves("interval_epsilon", values, axes, level=level, sensitivity=sensitivity)


def width_curves(
    *,
    width: ArrayLike = WIDTHS,
    level: ArrayLike = (0.5, 0.8, 0.95),
    count: float = 100.0,
    sensitivity: float = 1.0,
) -> xr.DataArray:
    """Return epsilon against the width of the interval, a curve a level (Figure 1 of the paper).

    Parameters
    ----------
    width, level : array_like
        One curve a level, over the widths.
    count, sensitivity : float
        As for `epsilon`.

    Returns
    -------
    DataArray
        interval_epsilon, dims (level, width).

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument is out of its range.

    See Also
    --------
    epsilon : epsilon from width and level
    edp_bayes.plots.plot_width_curves : epsilon against the width

    References
    ----------
    Naldi and D'Acquisto (2015), Figure 1.

    Examples
    --------
    >>> round(float(width_curves(width=[0.2], level=[0.8])[0, 0]), 7)
    0.0804719
    """
    p, w = _vector(_levels(level), "level"), _vector(width, "width")
    values = epsilon(count, w, p[:, None], sensitivity=sensitivity)
    axes = {"level": p, "width": w}
    return _curves("interval_epsilon", values, axes, count=count, sensitivity=sensitivity)


def level_curves(
    *,
    level: ArrayLike = LEVELS,
    width: ArrayLike = (0.05, 0.1, 0.2),
    count: float = 100.0,
    sensitivity: float = 1.0,
) -> xr.DataArray:
    """Return epsilon against the level of the interval, a curve a width (Figure 2 of the paper).

    Parameters
    ----------
    level, width : array_like
        One curve a width, over the levels.
    count, sensitivity : float
        As for `epsilon`.

    Returns
    -------
    DataArray
        interval_epsilon, dims (width, level).

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument is out of its range.

    See Also
    --------
    epsilon : epsilon from width and level
    edp_bayes.plots.plot_level_curves : epsilon against the level

    References
    ----------
    Naldi and D'Acquisto (2015), Figure 2.

    Examples
    --------
    >>> round(float(level_curves(level=[0.8], width=[0.2])[0, 0]), 7)
    0.0804719
    """
    w, p = _vector(width, "width"), _vector(_levels(level), "level")
    values = epsilon(count, w[:, None], p, sensitivity=sensitivity)
    axes = {"width": w, "level": p}
    return _curves("interval_epsilon", values, axes, count=count, sensitivity=sensitivity)


def posterior(
    answer: Any,
    *,
    width: ArrayLike | None = None,
    level: ArrayLike | None = None,
    epsilon: ArrayLike | None = None,
    sensitivity: float = 1.0,
) -> xr.Dataset:
    """Return the posterior of epsilon, level and width, given that of the true answer.

    Parameters
    ----------
    answer : array_like or DataArray
        Posterior draws of the true answer: dims (chain, draw), or an array of shape (draw,) or
        (chain, draw); see `answer_from_release`, `answer_from_data` and `answer_from_mixture`. Its
        absolute value counts. A single number is an answer that is known.
    width : array_like, optional
        Relative half-widths: a number, or a vector that becomes a dimension.
    level : array_like, optional
        Probabilities of the interval.
    epsilon : array_like, optional
        Epsilons, for instance that of a count which was already released.
    sensitivity : float
        Largest effect of one individual on the answer: 1 for counts.

    Returns
    -------
    Dataset
        What two of the three give of the third, dims (chain, draw) and those of the vectors:
        interval_epsilon for (width, level), interval_level for (epsilon, width) and
        interval_width for (epsilon, level). With an epsilon and a vector of widths,
        interval_level is the curve of (width, level) that this epsilon implies. The draws of the
        answer are there too.

    Raises
    ------
    InvalidInputError, InputTypeError
        If fewer than two of width, level and epsilon are given, one is out of its range, or the
        draws are zero, not finite or of another shape.

    See Also
    --------
    epsilon : epsilon from width and level
    answer_from_data : the true answer from several databases
    answer_from_release : the true answer from a noisy one

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.random.default_rng(1).normal(100.0, 5.0, (4, 500))
    >>> found = posterior(draws, width=0.2, level=0.8)
    >>> round(float(found["interval_epsilon"].median()), 2)
    0.08
    """
    import xarray as xr

    given = {"width": width, "level": level, "epsilon": epsilon}
    axes = {name: _axis(value, name) for name, value in given.items() if value is not None}
    if len(axes) < 2:
        raise InvalidInputError(
            "two of width, level and epsilon must be given, found "
            + (f"only {next(iter(axes))}" if axes else "none")
        )
    draws, scale = _answer_draws(answer), _sensitivity(sensitivity)
    size = abs(draws)
    out = xr.Dataset({"answer": draws})
    if "width" in axes and "level" in axes:
        out["interval_epsilon"] = -scale * np.log1p(-axes["level"]) / (size * axes["width"])
    if "epsilon" in axes and "width" in axes:
        out["interval_level"] = -np.expm1(-size * axes["epsilon"] * axes["width"] / scale)
    if "epsilon" in axes and "level" in axes:
        out["interval_width"] = -scale * np.log1p(-axes["level"]) / (size * axes["epsilon"])
    order = ("chain", "draw", "epsilon", "width", "level")
    out = out.transpose(*(name for name in order if name in out.dims))
    return out.assign_attrs(
        inference_library="edp_bayes", sample_dims=["chain", "draw"], sensitivity=scale
    )


def _curves(name: str, values: Array, axes: dict[str, Array], **given: float) -> xr.DataArray:
    """Return curves over the second axis, one for each value of the first."""
    import xarray as xr

    attrs = {key: float(value) for key, value in given.items()}
    return xr.DataArray(values, axes, tuple(axes), name=name, attrs=attrs)


def _positive(value: ArrayLike, name: str) -> Array:
    """Return numbers that are all above zero."""
    array = validate.finite_array(value, name)
    if (array <= 0).any():
        raise InvalidInputError(f"{name} must be greater than 0, found {array.min()}")
    return array


def _vector(value: ArrayLike, name: str) -> Array:
    """Return a non-empty vector of numbers above zero."""
    array = np.atleast_1d(_positive(value, name))
    if array.ndim != 1 or array.size == 0:
        raise InvalidInputError(f"{name} must be a number or a vector, found shape {array.shape}")
    return array


def _levels(value: ArrayLike) -> Array:
    array = validate.finite_array(value, "level")
    bad = (array <= 0) | (array >= 1)
    if bad.any():
        raise InvalidInputError(
            f"level must lie strictly between 0 and 1, found {array[bad].flat[0]}"
        )
    return array


def _sensitivity(value: Any) -> float:
    return validate.positive_number(value, "sensitivity")


def _broadcast(**arrays: Array) -> tuple[Array, ...]:
    try:
        return tuple(np.broadcast_arrays(*arrays.values()))
    except ValueError:
        raise InvalidInputError(
            f"{', '.join(arrays)} must broadcast to one shape, found "
            + ", ".join(str(array.shape) for array in arrays.values())
        ) from None


def _plain(values: Array) -> Any:
    return float(values) if np.ndim(values) == 0 else values


def _axis(value: ArrayLike, name: str) -> xr.DataArray:
    """Return a number as a scalar coordinate, a vector as a dimension, of its own name."""
    import xarray as xr

    values = _levels(value) if name == "level" else _positive(value, name)
    if values.ndim == 0:
        return xr.DataArray(values, {name: values})
    if values.ndim != 1 or values.size == 0 or np.unique(values).size < values.size:
        raise InvalidInputError(
            f"{name} must be a number or a vector of different numbers, found {values.tolist()}"
        )
    return xr.DataArray(values, {name: values}, (name,))


def _answer_draws(answer: Any) -> xr.DataArray:
    """Return draws of the true answer with dims (chain, draw)."""
    import xarray as xr

    if isinstance(answer, xr.DataArray):
        if set(answer.dims) != {"chain", "draw"}:
            raise InvalidInputError(
                f"draws of the answer must have the dims chain and draw, found {answer.dims}"
            )
        answer = answer.transpose("chain", "draw").to_numpy()
    values = validate.finite_array(answer, "the draws of the answer")
    if values.size == 0 or values.ndim > 2:
        raise InvalidInputError(
            f"draws of the answer must have shape (draw,) or (chain, draw), found {values.shape}"
        )
    if (values == 0).any():
        raise InvalidInputError(
            f"the answer must not be 0, found {int(np.sum(values == 0))} of {values.size} draws: "
            "an interval relative to 0 is empty"
        )
    chains = np.atleast_2d(values)
    coords = {"chain": np.arange(chains.shape[0]), "draw": np.arange(chains.shape[1])}
    return xr.DataArray(chains, coords, ("chain", "draw"), name="answer")
