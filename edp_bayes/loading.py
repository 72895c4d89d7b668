"""Read a saved result, of whatever kind it is: `edp.load`."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results.loading import load_sound_tree

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["load"]

# Where each result is; only that of a file is imported.
MODULES = {
    "Audit": "edp_bayes.results.query",
    "JointAudit": "edp_bayes.results.joint",
    "ComposedAudit": "edp_bayes.results.composition",
    "MechanismAudit": "edp_bayes.results.mechanism",
    "PropertyAudit": "edp_bayes.results.property",
    "Verification": "edp_bayes.noise.verification",
    "Leakage": "edp_bayes.auditing.leakage",
}


@overload
def load(path: str | Path) -> Any: ...


@overload
def load[T](path: str | Path, *, kind: type[T]) -> T: ...


def load(path: str | Path, *, kind: type[Any] | None = None) -> Any:
    """Load a result that its `save` wrote.

    Parameters
    ----------
    path : str or Path
        A NetCDF file or a Zarr folder.
    kind : type, optional
        The result that is expected, such as `Audit`; any other is refused then.

    Returns
    -------
    Audit, JointAudit, ComposedAudit, MechanismAudit, PropertyAudit, Verification or Leakage
        The same draws, summaries, checks and settings.

    Raises
    ------
    InvalidInputError
        If the file does not exist, is not whole, or holds no result or another than was expected.

    See Also
    --------
    Audit.save : write a result to a file
    Audit : the posterior of a query

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
    ...     responses, epsilon=[0.1, 0.5], model=edp.SmoothedBootstrap(), draws=50, random_seed=1,
    ...     progressbar=False,
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     again = edp.load(audit.save(f"{folder}/audit.nc"), kind=edp.Audit)
    >>> bool((again.delta == audit.delta).all())
    True
    """
    tree = load_sound_tree(path)
    name = _name(tree)
    if name is None:
        raise InvalidInputError(f"{path} is not a saved result")
    held = getattr(import_module(MODULES[name]), name)
    if kind is not None and not issubclass(held, kind):
        raise InvalidInputError(f"{path} is a saved {name}, not {kind.__name__}")
    return held(tree)


def _name(tree: xr.DataTree) -> str | None:
    """Return which result a tree is of, by what only that one holds."""
    if tree.attrs.get("holds") == "leakage":
        return "Leakage"
    if "edp_bayes_version" not in tree.attrs or "posterior" not in tree.children:
        return None
    posterior = tree["posterior"].data_vars
    if "composition" in tree.children:
        return "ComposedAudit"
    if "log_ratio" in posterior:
        return "Verification"
    if "mixture" in tree.children:
        return "JointAudit" if "integration_error" in tree.children else "Audit"
    if "local_epsilon" in posterior:
        return "MechanismAudit"
    return "PropertyAudit" if "prob" in posterior else None
