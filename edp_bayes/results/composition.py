"""What several releases together come back as."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import xarray as xr

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results.base import IndividualCurves
from edp_bayes.results.loading import load_sound_tree

__all__ = ["ComposedAudit", "load_composed_audit"]


@dataclass(frozen=True, eq=False, repr=False)
class ComposedAudit(IndividualCurves):
    """Posterior draws of every privacy quantity of several releases, each of a fresh database.

    Made by `edp_bayes.compose`, `Audit.compose` and `load_composed_audit`.

    Parameters
    ----------
    tree : xarray.DataTree
        Groups posterior (delta, total_risk, total_risk_bound, individual_delta), all of them upper
        bounds, and lower_bounds. Settings say how many databases there are of each audit, which
        hypotheses are compared, what is assumed of draws, and the gap to the lower bounds.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.1, (40, 3))
    ... )
    >>> audit = edp.audit(
    ...     responses, epsilon=[0.1, 0.5], draws=50, random_seed=1, progressbar=False
    ... )
    >>> year = audit.compose(databases=12, progressbar=False)
    >>> year.databases, year.subject[0]
    (12, 'arrays in 12 fresh databases')
    """

    @property
    def databases(self) -> int:
        """How many databases there are, of all kinds."""
        return int(sum(self.settings["composed"]))

    @property
    def individual_delta(self) -> xr.DataArray:
        """delta_i(epsilon) of the riskiest, (chain, draw, individual, epsilon)."""
        return self._posterior["individual_delta"]

    @property
    def hypotheses(self) -> str:
        """Which two hypotheses are compared, in a sentence."""
        return str(self.settings["hypotheses"])

    @property
    def against(self) -> str:
        """Against whom, in words; empty where no adversary was given."""
        return str(self.settings.get("against", ""))

    @property
    def subject(self) -> tuple[str, str]:
        """What is audited, and on how much data, in words."""
        query, size = super().subject
        several = "s" if self.databases > 1 else ""
        return f"{query} in {self.databases:,} fresh database{several}", size

    @property
    def _subject(self) -> str:
        return f"{self.subject[0]}, "


def load_composed_audit(path: str | Path) -> ComposedAudit:
    """Load a composition that `ComposedAudit.save` wrote.

    Parameters
    ----------
    path : str or Path
        A NetCDF file or a Zarr folder.

    Returns
    -------
    ComposedAudit
        The same draws and settings.

    Raises
    ------
    InvalidInputError
        If the file does not exist, is not whole or is not a composition.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40), contribution=rng.gamma(2.0, 0.1, (40, 3))
    ... )
    >>> audit = edp.audit(
    ...     responses, epsilon=[0.1, 0.5], draws=50, random_seed=1, progressbar=False
    ... )
    >>> year = audit.compose(databases=12, progressbar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = edp.load_composed_audit(year.save(f"{folder}/year.nc"))
    >>> bool((again.delta == year.delta).all())
    True
    """
    tree = load_sound_tree(path)
    if "composition" not in tree.children:
        raise InvalidInputError(f"{path} is not a saved composition")
    return ComposedAudit(tree)
