"""What an audit comes back as: a tree of draws that saves, loads, summarises and plots itself."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from edp_bayes import bands, files, validate
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.mixtures import Mixture
from edp_bayes.noise.laws import GaussianNoise, LaplaceNoise

if TYPE_CHECKING:
    import pandas as pd
    from arviz_plots import PlotCollection

__all__ = ["Audit", "load_audit"]

TARGETS = (1e-2, 1e-3)
NOISES = {law.__name__: law for law in (GaussianNoise, LaplaceNoise)}
BAND_KINDS = ("simultaneous", "pointwise")


@dataclass(frozen=True, eq=False)
class Audit:
    """Posterior draws of every privacy quantity of one query.

    Made by `edp_bayes.audit` and `edp_bayes.load_audit`.

    Parameters
    ----------
    tree : xarray.DataTree
        Groups posterior (delta, total_risk, total_risk_bound, individual_delta), individuals (a
        summary of every individual), densities (with and without the riskiest), mixture,
        observed_data, log_likelihood and, from NUTS, sample_stats. Settings, versions, seed,
        diagnostics and a fingerprint of the data stand in the attributes.
    """

    tree: xr.DataTree

    @property
    def delta(self) -> xr.DataArray:
        """delta(epsilon) = max_i delta_i, dims (chain, draw, epsilon)."""
        return self._posterior["delta"]

    @property
    def total_risk(self) -> xr.DataArray:
        """delta*(epsilon) = 1 - prod_i (1 - delta_i), dims (chain, draw, epsilon).

        The product assumes that individuals are exposed independently; whatever the dependence,
        the probability lies between `delta` and `total_risk_bound`.
        """
        return self._posterior["total_risk"]

    @property
    def total_risk_bound(self) -> xr.DataArray:
        """min(1, sum_i delta_i), dims (chain, draw, epsilon)."""
        return self._posterior["total_risk_bound"]

    @property
    def individual_delta(self) -> xr.DataArray:
        """delta_i(epsilon) of the riskiest and the named, (chain, draw, individual, epsilon).

        The individuals stand in the order of their mean risk over the grid.
        """
        return self._posterior["individual_delta"]

    @property
    def individuals(self) -> xr.Dataset:
        """Posterior mean and standard deviation of delta_i, presence and largest contribution.

        Dims (individual, epsilon), for every individual.
        """
        return self.tree["individuals"].to_dataset()

    @property
    def epsilon(self) -> xr.DataArray:
        """The grid of epsilon."""
        return self._posterior["epsilon"]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What is doubtful about this audit, in plain words."""
        return tuple(self._record("warnings"))

    @property
    def settings(self) -> Mapping[str, Any]:
        """Model, sampler, seed, versions, query and fingerprint of the data."""
        return dict(self._record("settings"))

    @property
    def checks(self) -> pd.DataFrame:
        """Every check made: of the databases, of the fit and of the draws."""
        import pandas as pd

        return pd.DataFrame(self._record("checks")).set_index("check")

    @property
    def mixture(self) -> Mixture:
        """Draws of the law of the response, shape (chain, draw, component), with known noise."""
        group = self.tree["mixture"].to_dataset()
        parts = (group[name].to_numpy() for name in ("weights", "locations", "scales"))
        noise = self._record("noise")
        law = NOISES[noise["law"]](noise["scale"]) if noise else None
        return Mixture(*parts, kernel=str(group.attrs["kernel"]), noise=law)

    def epsilon_at(self, delta: ArrayLike) -> xr.DataArray:
        """Return the epsilon at which delta(epsilon) falls to a given delta.

        Parameters
        ----------
        delta : float or array_like
            Targets, each between 0 and 1.

        Returns
        -------
        DataArray
            Dims (chain, draw) for a number, (chain, draw, target) for an array. Between the
            grid's values the curve is replaced by its chord in exp(epsilon), which lies above it,
            so the result errs on the safe side. It is never below the grid's first value, and
            infinite where the curve is still above the target at the grid's last.
        """
        return _crossing(self.delta, delta)

    def band(
        self,
        quantity: str = "delta",
        *,
        kind: str = "simultaneous",
        prob: float | None = None,
    ) -> xr.Dataset:
        """Return a credible band over epsilon.

        Parameters
        ----------
        quantity : {"delta", "total_risk", "total_risk_bound", "individual_delta"}
            What the band is for; for individual_delta, one band for each individual.
        kind : {"simultaneous", "pointwise"}
            A simultaneous band holds whole curves with probability `prob` (a rank envelope); a
            pointwise one holds the value at each single epsilon with that probability.
        prob : float, optional
            ArviZ's ``stats.ci_prob`` if not given.

        Returns
        -------
        Dataset
            lower, median and upper over epsilon; kind and probability stand in the attributes.
        """
        validate.choice(kind, BAND_KINDS, "kind")
        prob = _probability(prob)
        make = bands.simultaneous if kind == "simultaneous" else bands.pointwise
        draws = self._quantity(quantity).stack(sample=("chain", "draw"))
        ends = xr.apply_ufunc(
            lambda curves: np.stack(make(curves.T, prob)),
            draws,
            input_core_dims=[["epsilon", "sample"]],
            output_core_dims=[["end", "epsilon"]],
            vectorize=True,
        )
        return xr.Dataset(
            {
                "lower": ends.isel(end=0),
                "median": draws.median("sample"),
                "upper": ends.isel(end=1),
            },
            attrs={"quantity": quantity, "kind": kind, "prob": prob},
        )

    def summary(
        self,
        *,
        ci_prob: float | None = None,
        ci_kind: str | None = None,
        targets: ArrayLike = TARGETS,
    ) -> pd.DataFrame:
        """Return a table of every privacy quantity, made by ArviZ.

        Parameters
        ----------
        ci_prob : float, optional
            Probability of the intervals; ArviZ's ``stats.ci_prob`` if not given.
        ci_kind : {"eti", "hdi"}, optional
            ArviZ's ``stats.ci_kind`` if not given.
        targets : array_like
            Values of delta for which epsilon is reported; a draw beyond the grid counts as the
            grid's last epsilon.

        Returns
        -------
        DataFrame
            One row a quantity and epsilon, with median, interval (its kind and probability are
            in the column's name), R-hat (1 for draws that are all equal), effective sample sizes
            and Monte Carlo errors.
        """
        from arviz_stats import summary

        posterior = self.tree["posterior"].to_dataset()
        for target in np.atleast_1d(np.asarray(targets, dtype=np.float64)):
            crossing = self.epsilon_at(float(target))
            posterior[f"epsilon_at[{target:g}]"] = crossing.clip(max=float(self.epsilon[-1]))
        with np.errstate(invalid="ignore"):
            table: pd.DataFrame = summary(
                xr.DataTree.from_dict({"posterior": posterior}),
                ci_prob=ci_prob,
                ci_kind=ci_kind,
                kind="all_median",
                round_to="none",
            )
        # Draws that are all equal have converged, though R-hat is 0 / 0 there.
        table["r_hat"] = table["r_hat"].fillna(1.0)
        return table

    def to_datatree(self) -> xr.DataTree:
        """Return a copy of the tree, in ArviZ's conventions."""
        return self.tree.copy()

    def save(self, path: str | Path) -> Path:
        """Write to NetCDF, or to Zarr for a name ending in .zarr; complete or not at all.

        Raises
        ------
        InvalidInputError
            If the file cannot be written.
        """
        return files.save_tree(self.tree, Path(path))

    def plot_delta(self, **options: Any) -> PlotCollection:
        """Plot delta(epsilon) with its bands; see `edp_bayes.plots.plot_delta`."""
        from edp_bayes import plots

        return plots.plot_delta(self, **options)

    def plot_total_risk(self, **options: Any) -> PlotCollection:
        """Plot delta*(epsilon) with its bands; see `edp_bayes.plots.plot_total_risk`."""
        from edp_bayes import plots

        return plots.plot_total_risk(self, **options)

    def plot_density(self, individual: Any = None, **options: Any) -> PlotCollection:
        """Plot the densities with and without somebody; see `edp_bayes.plots.plot_density`."""
        from edp_bayes import plots

        return plots.plot_density(self, individual=individual, **options)

    def plot_individuals(self, **options: Any) -> PlotCollection:
        """Plot the riskiest individuals; see `edp_bayes.plots.plot_individuals`."""
        from edp_bayes import plots

        return plots.plot_individuals(self, **options)

    @cached_property
    def _posterior(self) -> xr.Dataset:
        return self.tree["posterior"].to_dataset()

    def _quantity(self, name: str) -> xr.DataArray:
        curves = [str(key) for key in self._posterior.data_vars]
        return self._posterior[validate.choice(name, curves, "quantity")]

    def _record(self, name: str) -> Any:
        return json.loads(self.tree.attrs[name])


def load_audit(path: str | Path) -> Audit:
    """Load an audit that `Audit.save` wrote.

    Raises
    ------
    InvalidInputError
        If the file does not exist, is not whole or is not an audit.
    """
    tree = files.load_tree(Path(path))
    if "edp_bayes_version" not in tree.attrs or "posterior" not in tree.children:
        raise InvalidInputError(f"{path} is not a saved audit")
    return Audit(tree)


def _crossing(curve: xr.DataArray, target: ArrayLike) -> xr.DataArray:
    """Return where a non-increasing curve meets a target, by its chord in exp(epsilon)."""
    targets = validate.finite_array(target, "delta")
    if ((targets <= 0) | (targets >= 1)).any():
        raise InvalidInputError(
            f"delta must lie strictly between 0 and 1, found {targets.tolist()}"
        )
    grid = curve["epsilon"].to_numpy()
    growth = np.exp(grid)
    values = curve.transpose("chain", "draw", "epsilon").to_numpy()
    out = np.empty((*values.shape[:2], *targets.shape))
    for index in np.ndindex(targets.shape):
        level = targets[index]
        last = (values > level).sum(axis=-1) - 1
        left = np.clip(last, 0, grid.size - 2) if grid.size > 1 else np.zeros_like(last)
        right = np.minimum(left + 1, grid.size - 1)
        above = np.take_along_axis(values, left[..., None], -1)[..., 0]
        below = np.take_along_axis(values, right[..., None], -1)[..., 0]
        share = np.divide(
            above - level, above - below, out=np.ones_like(above), where=above > below
        )
        crossing = np.log(growth[left] + share * (growth[right] - growth[left]))
        crossing = np.where(last < 0, grid[0], crossing)
        out[(..., *index)] = np.where(last == grid.size - 1, np.inf, crossing)
    coords = {"chain": curve["chain"], "draw": curve["draw"]}
    if targets.ndim == 0:
        return xr.DataArray(out, coords, ("chain", "draw"), name="epsilon_at")
    return xr.DataArray(
        out, {**coords, "target": targets}, ("chain", "draw", "target"), name="epsilon_at"
    )


def _probability(prob: float | None) -> float:
    if prob is None:
        from arviz_base import rcParams

        return float(rcParams["stats.ci_prob"])
    return validate.probability(prob, "prob")
