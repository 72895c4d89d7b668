"""What an audit of properties comes back as."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes import diagnostics, files
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.privacy_curves import PrivacyCurves
from edp_bayes.property_audit.counts import PropertyCounts
from edp_bayes.property_audit.models import ProbabilityDraws

if TYPE_CHECKING:
    from arviz_plots import PlotCollection

__all__ = ["PropertyAudit", "assemble", "load_property_audit"]

Array = NDArray[np.float64]

LIBRARIES = ("numpy", "scipy", "numba", "pymc", "nutpie", "arviz-stats", "xarray")
LEAST_DRAWS = 8


@dataclass(frozen=True, eq=False, repr=False)
class PropertyAudit(PrivacyCurves):
    """Posterior draws of the privacy of property queries.

    Made by `edp_bayes.audit_property` and `load_property_audit`. Of several properties, `delta`
    is that of the riskiest in each draw.

    Parameters
    ----------
    tree : xarray.DataTree
        Groups posterior (delta, prob and, where they apply, property_delta and concentration),
        observed_data, log_likelihood of every model and, from NUTS, sample_stats. Settings,
        versions, seed, checks and a fingerprint of the counts stand in the attributes.

    Examples
    --------
    >>> import edp_bayes as edp
    >>> audit = edp.audit_property(103, 1000, [0.1, 0.5], random_seed=1, progressbar=False)
    >>> audit.prob.dims, audit.property_delta.dims
    (('chain', 'draw', 'property'), ('chain', 'draw', 'property', 'epsilon'))
    >>> audit.dependent
    False
    """

    risk: ClassVar[str] = "risk of the critical entry"

    @property
    def prob(self) -> xr.DataArray:
        """The probability pi of every property, dims (chain, draw, property).

        Of dependent entries, the mean of its Beta law.
        """
        return self._posterior["prob"]

    @property
    def concentration(self) -> xr.DataArray:
        """The concentration alpha + beta of pi's Beta law, dims (chain, draw, property).

        Raises
        ------
        InvalidInputError
            If the entries are independent.
        """
        if not self.dependent:
            raise InvalidInputError("concentration is there for dependent entries only")
        return self._posterior["concentration"]

    @property
    def property_delta(self) -> xr.DataArray:
        """delta(epsilon) of every property, dims (chain, draw, property, epsilon)."""
        if "property_delta" in self._posterior:
            return self._posterior["property_delta"]
        only = self.delta.expand_dims(property=self._posterior["property"])
        return only.transpose("chain", "draw", "property", "epsilon")

    @property
    def dependent(self) -> bool:
        """Whether the curve is that of exchangeable, dependent entries."""
        return "concentration" in self._posterior

    def plot_delta(self, **options: Any) -> PlotCollection:
        """Plot delta(epsilon) with its bands; see `edp_bayes.plots.plot_delta`."""
        from edp_bayes import plots

        return plots.plot_delta(self, **options)  # type: ignore[arg-type]


def load_property_audit(path: str | Path) -> PropertyAudit:
    """Load an audit that `PropertyAudit.save` wrote.

    Parameters
    ----------
    path : str or Path
        A NetCDF file or a Zarr folder.

    Returns
    -------
    PropertyAudit
        The same draws, checks and settings.

    Raises
    ------
    InvalidInputError
        If the file does not exist, is not whole or is not an audit of properties.

    Examples
    --------
    >>> import tempfile
    >>> import edp_bayes as edp
    >>> audit = edp.audit_property(103, 1000, [0.1], random_seed=1, progressbar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = edp.load_property_audit(audit.save(f"{folder}/audit.nc"))
    >>> bool((again.delta == audit.delta).all())
    True
    """
    tree = files.load_tree(Path(path))
    if "posterior" not in tree.children or "prob" not in tree["posterior"].data_vars:
        raise InvalidInputError(f"{path} is not a saved audit of properties")
    return PropertyAudit(tree)


def assemble(
    *,
    counts: PropertyCounts,
    draws: ProbabilityDraws,
    likelihoods: Mapping[str, Array],
    kept: NDArray[np.int64],
    curves: Array,
    epsilon: Array,
    checks: list[dict[str, Any]],
    doubts: list[str],
    record: Mapping[str, Any],
) -> PropertyAudit:
    """Return the audit; nothing is sampled here.

    Parameters
    ----------
    counts, draws
        What was fitted, and how it came out.
    likelihoods : mapping
        Log likelihood of every model that was fitted, shape (chain, draw, database, property).
    kept : ndarray
        Draws of each chain whose curves were computed.
    curves : ndarray
        Shape (chain, draw, property, epsilon).
    epsilon : ndarray
        Shape (epsilon,).
    checks, doubts
        What was checked before, and what failed.
    record : mapping
        Settings.
    """
    chains, all_draws = draws.prob.shape[:2]
    lead = ("chain", "draw")
    named = {"property": list(counts.properties)}
    posterior = xr.Dataset(
        {
            "delta": ((*lead, "epsilon"), curves.max(axis=2)),
            "prob": ((*lead, "property"), draws.prob[:, kept]),
        },
        coords={"chain": np.arange(chains), "draw": kept, "epsilon": epsilon, **named},
        attrs={
            "created_at": datetime.now(UTC).isoformat(),
            "inference_library": "edp_bayes",
            "inference_library_version": version("edp_bayes"),
        },
    )
    if draws.concentration is not None:
        posterior["concentration"] = ((*lead, "property"), draws.concentration[:, kept])
    if counts.n_properties > 1:
        posterior["property_delta"] = ((*lead, "property", "epsilon"), curves)
    database = {"database": np.arange(counts.n_databases)}
    cells = ("database", "property")
    groups: dict[str, xr.Dataset] = {
        "posterior": posterior,
        "observed_data": xr.Dataset(
            {"count": (cells, counts.count), "n": ("database", counts.n)},
            coords={**database, **named},
        ),
        "log_likelihood": xr.Dataset(
            {name: ((*lead, *cells), values) for name, values in likelihoods.items()},
            coords={"chain": np.arange(chains), "draw": np.arange(all_draws), **database, **named},
        ),
    }
    if draws.sample_stats is not None:
        groups["sample_stats"] = draws.sample_stats
    found, failed = _convergence(posterior, draws.divergences)
    tree = xr.DataTree.from_dict(groups)
    tree.attrs = {
        "edp_bayes_version": version("edp_bayes"),
        "settings": json.dumps({**record, "versions": {name: version(name) for name in LIBRARIES}}),
        "checks": json.dumps([*checks, *found]),
        "warnings": json.dumps([*doubts, *failed]),
    }
    return PropertyAudit(tree)


def _convergence(posterior: xr.Dataset, divergences: int) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each quantity whose draws are checked, and the failures in words."""
    rows: list[dict[str, Any]] = []
    failed: list[str] = []
    if posterior.sizes["draw"] < LEAST_DRAWS:
        return rows, failed
    for name in ("prob", "delta"):
        check = diagnostics.check_draws(
            posterior[name], divergences=divergences if name == "prob" else 0
        )
        sentence = " ".join(check.warnings) or f"R-hat at most {float(check.rhat.max()):.3f}."
        rows.append(
            {
                "check": f"convergence of {name}",
                "statistic": float(check.rhat.max()),
                "passed": check.passed,
                "sentence": sentence,
            }
        )
        failed.extend(check.warnings)
    return rows, failed
