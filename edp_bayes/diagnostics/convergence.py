"""Convergence of the draws of a privacy quantity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.utils import validate
from edp_bayes.utils.sentences import Sentence

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["DrawChecks", "check_draws", "convergence"]

MAX_RHAT = 1.01
MIN_ESS = 400.0
MIN_DRAWS = 4
DIVERGING = "Raise target_accept to 0.99 (--target-accept)."


@dataclass(frozen=True, eq=False)
class DrawChecks:
    """Convergence of the draws of one array, elementwise; every field lacks chain and draw.

    Parameters
    ----------
    name : str
        Name of the array.
    rhat : DataArray
        Rank-normalised split R-hat; 1 where all draws are the same number, without bound where
        each chain is constant and they disagree.
    ess_bulk, ess_tail : DataArray
        Effective sample sizes of the bulk and of the interval's two quantiles.
    mcse_mean, mcse_lower, mcse_upper : DataArray
        Monte Carlo standard errors of the mean and of the two ends of the interval.
    constant : DataArray of bool
        Every draw is the same number, such as a risk of exactly zero; this counts as converged.
    divergences : int
        Divergent transitions of the sampler.
    draws : int
        Draws in all chains.
    ci_prob : float
        Probability of the equal-tailed interval whose ends were checked.
    independent : bool
        The draws are exact and independent: no chain can disagree with another.
    diverging : str
        What helps against divergent transitions of this model.

    See Also
    --------
    check_draws : whether the draws have converged
    edp_bayes.models.SamplerSettings : draws, chains and sampler

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> draws = np.random.default_rng(1).normal(size=(4, 500))
    >>> check_draws(xr.DataArray(draws, dims=("chain", "draw"), name="delta")).draws
    2000
    """

    name: str
    rhat: xr.DataArray
    ess_bulk: xr.DataArray
    ess_tail: xr.DataArray
    mcse_mean: xr.DataArray
    mcse_lower: xr.DataArray
    mcse_upper: xr.DataArray
    constant: xr.DataArray
    divergences: int
    draws: int
    ci_prob: float
    independent: bool = False
    diverging: str = DIVERGING

    @property
    def passed(self) -> bool:
        """Whether there is nothing to warn of."""
        return not self.warnings

    @property
    def warnings(self) -> tuple[str, ...]:
        """What has not converged, in plain words."""
        if self.independent:
            short_of = self.draws < MIN_ESS and not bool(self.constant.all())
            return (
                (Sentence(self._independent + " Take more draws (draws=, --draws)."),)
                if short_of
                else ()
            )
        found = []
        rhat = float(self.rhat.max())
        if rhat > MAX_RHAT:
            count = int((self.rhat > MAX_RHAT).sum())
            found.append(
                f"The chains disagree about {self.name}: R-hat reaches {rhat:.4f} (at most "
                f"{MAX_RHAT} is right) in {count} of {self.rhat.size} value(s). Draw longer "
                "(draws=, --draws)."
            )
        least = {"bulk": float(self.ess_bulk.min()), "tail": float(self.ess_tail.min())}
        short = [f"{ess:.0f} in the {part}" for part, ess in least.items() if ess < MIN_ESS]
        if short:
            few = (self.ess_bulk < MIN_ESS) | (self.ess_tail < MIN_ESS)
            found.append(
                f"{self.name} rests on few independent draws: the effective sample size falls to "
                f"{' and '.join(short)} of {self.draws} draws (at least {MIN_ESS:.0f} is right) "
                f"in {int(few.sum())} of {few.size} value(s). Draw longer "
                "(draws=, --draws)."
            )
        if self.divergences:
            found.append(
                f"The sampler diverged {self.divergences} time(s) in {self.draws} draws: part of "
                f"the posterior may be missing. {self.diverging}"
            )
        return tuple(map(Sentence, found))

    @property
    def _independent(self) -> str:
        enough = f"at least {MIN_ESS:.0f} is right"
        return f"{self.name} rests on {self.draws} independent draws ({enough})."

    def row(self) -> dict[str, Any]:
        """Return what an audit records: check, statistic, whether it passed, a sentence."""
        largest = float(self.rhat.max())
        fewest = min(float(self.ess_bulk.min()), float(self.ess_tail.min()))
        good = (
            self._independent
            if self.independent
            else f"R-hat at most {largest:.3f}, effective sample size at least {fewest:.0f}."
        )
        return {
            "check": f"convergence of {self.name}",
            "statistic": largest,
            "passed": self.passed,
            "sentence": Sentence(" ".join(self.warnings) or good),
        }

    def table(self) -> pd.DataFrame:
        """Return one row an element of the array."""
        import xarray as xr

        fields = ("rhat", "ess_bulk", "ess_tail", "mcse_mean", "mcse_lower", "mcse_upper")
        columns = {field: getattr(self, field) for field in (*fields, "constant")}
        if not self.rhat.dims:
            import pandas as pd

            values = {field: array.item() for field, array in columns.items()}
            return pd.DataFrame(values, index=pd.Index([self.name]))
        return xr.Dataset(columns).to_dataframe()[list(columns)]


def check_draws(
    array: xr.DataArray,
    *,
    divergences: int = 0,
    ci_prob: float | None = None,
    independent: bool = False,
    diverging: str = DIVERGING,
) -> DrawChecks:
    """Check that draws of a privacy quantity have converged.

    Judge delta, the total risk or a density by this, never the parameters of a mixture: their
    labels switch between chains while every quantity of interest agrees.

    Parameters
    ----------
    array : DataArray
        Draws, with dims chain and draw and any others. A single chain is compared half
        against half.
    divergences : int
        Divergent transitions the sampler reported.
    ci_prob : float, optional
        Interval whose ends are checked; ArviZ's rcParams["stats.ci_prob"] by default.
    independent : bool
        The draws are exact and independent, so that only their number counts.
    diverging : str
        What helps against divergent transitions of the model.

    Returns
    -------
    DrawChecks
        R-hat, effective sample sizes and Monte Carlo errors, and warnings where R-hat exceeds
        1.01, an effective sample size is below 400 or a transition diverged.

    Raises
    ------
    InputTypeError
        If `array` is no DataArray or `divergences` no integer.
    InvalidInputError
        If dims are missing, draws are fewer than four a chain (eight in a single chain) or not
        finite.

    See Also
    --------
    DrawChecks : the outcome for the draws
    edp_bayes.models.SamplerSettings : draws, chains and sampler

    References
    ----------
    Vehtari, Gelman, Simpson, Carpenter, Bürkner (2021), Rank-normalization, folding, and
    localization, Bayesian Analysis 16, 667-718.

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> from edp_bayes.diagnostics import check_draws
    >>> zero = xr.DataArray(np.zeros((4, 500)), dims=("chain", "draw"), name="delta")
    >>> check_draws(zero).passed
    True
    """
    from arviz_stats import ess, mcse, rhat

    from edp_bayes.utils.defaults import default_probability

    draws = _valid_draws(array)
    if isinstance(divergences, bool) or not isinstance(divergences, int | np.integer):
        raise InputTypeError(f"divergences must be an integer, found {divergences!r}")
    mass = default_probability(ci_prob, "ci_prob")
    ends = (0.5 * (1 - mass), 0.5 * (1 + mass))
    sample = ("chain", "draw")
    low, high = draws.min(sample), draws.max(sample)
    constant = low == high
    size = draws.sizes["chain"] * draws.sizes["draw"]

    def settled(values: xr.DataArray, if_constant: float, if_undefined: object) -> xr.DataArray:
        known = values.where(values.notnull(), if_undefined)
        kept: xr.DataArray = known.where(~constant, if_constant).transpose(*low.dims)
        return kept

    with np.errstate(divide="ignore", invalid="ignore"):
        chains = _halves(draws) if draws.sizes["chain"] == 1 else draws
        ratio = settled(rhat(chains, sample_dims=sample), 1.0, np.inf)
        bulk, tail = (
            settled(ess(draws, sample_dims=sample, method=method, prob=prob), size, 0.0)
            for method, prob in (("bulk", None), ("tail", ends))
        )
        mean, lower, upper = (
            settled(mcse(draws, sample_dims=sample, method=method, prob=prob), 0.0, high - low)
            for method, prob in (("mean", None), ("quantile", ends[0]), ("quantile", ends[1]))
        )
    name = "the quantity" if array.name is None else str(array.name)
    return DrawChecks(
        name=name,
        rhat=ratio,
        ess_bulk=bulk,
        ess_tail=tail,
        mcse_mean=mean,
        mcse_lower=lower,
        mcse_upper=upper,
        constant=constant,
        divergences=int(divergences),
        draws=size,
        ci_prob=mass,
        independent=independent,
        diverging=diverging,
    )


def convergence(
    draws: xr.Dataset,
    *,
    divergences: int = 0,
    independent: bool = False,
    diverging: str = DIVERGING,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each quantity and what has not converged; nothing for too few draws.

    Infinite draws count as a number just above the largest finite one. Divergences are told of
    the first quantity.
    """
    from edp_bayes.results.summaries import finite_draws

    if draws.sizes["draw"] < _least_draws(draws.sizes["chain"]):
        return [], []
    counts = (divergences, *[0] * len(draws))
    checks = [
        check_draws(one, divergences=count, independent=independent, diverging=diverging)
        for one, count in zip(finite_draws(draws)[0].values(), counts, strict=False)
    ]
    return [check.row() for check in checks], [w for check in checks for w in check.warnings]


def _valid_draws(array: xr.DataArray) -> xr.DataArray:
    import xarray as xr

    if not isinstance(array, xr.DataArray):
        raise InputTypeError(f"draws must be an xarray DataArray, found {type(array).__name__}")
    missing = [dim for dim in ("chain", "draw") if dim not in array.dims]
    if missing:
        raise InvalidInputError(
            f"draws must have dims chain and draw, found {', '.join(map(str, array.dims))}"
        )
    validate.finite_array(array.values, "draws")
    require_enough_draws(array.sizes["chain"], array.sizes["draw"])
    return array.astype(np.float64)


def require_enough_draws(chains: int, draws: int) -> None:
    """Raise InvalidInputError where draws of each chain are too few to judge convergence."""
    least = _least_draws(chains)
    if draws < least:
        raise InvalidInputError(
            f"convergence needs at least {least} draws in each of {chains} chain(s), found {draws}"
        )


def _least_draws(chains: int) -> int:
    return MIN_DRAWS if chains > 1 else 2 * MIN_DRAWS


def _halves(draws: xr.DataArray) -> xr.DataArray:
    """Return the two halves of a single chain as two chains."""
    import xarray as xr

    one = draws.isel(chain=0, drop=True)
    half = one.sizes["draw"] // 2
    parts = [one.isel(draw=slice(start, start + half)) for start in (0, half)]
    bare = [part.drop_vars("draw", errors="ignore") for part in parts]
    return xr.concat(bare, dim="chain")
