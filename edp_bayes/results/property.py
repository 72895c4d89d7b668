"""What an audit of properties comes back as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import xarray as xr

from edp_bayes.exceptions import InvalidInputError
from edp_bayes.results.base import PrivacyCurves

__all__ = ["PropertyAudit", "who_knows"]


def who_knows(known: int) -> str:
    """Return the adversary of a property query who knows so many other entries, in words."""
    entries = f"{known:,} of the other entries" if known else "none of the entries"
    return f"a person who knows the probability of the property, and {entries}"


@dataclass(frozen=True, eq=False, repr=False)
class PropertyAudit(PrivacyCurves):
    """Posterior draws of the privacy of property queries.

    Made by `edp_bayes.audit_property` and `edp_bayes.load`. Of several properties, `delta`
    is that of the riskiest in each draw.

    Parameters
    ----------
    tree : xarray.DataTree
        Groups posterior (delta, prob and, where they apply, property_delta and concentration),
        observed_data, log_likelihood of every model and, from NUTS, sample_stats. Settings,
        versions, seed, checks and a fingerprint of the counts stand in the attributes.

    See Also
    --------
    audit_property : the probability of a property from data
    edp_bayes.load : load a saved result
    edp_bayes.statistical_privacy.PropertyQuery : the share of entries with a property

    Examples
    --------
    >>> import edp_bayes as edp
    >>> audit = edp.audit_property(103, 1000, epsilon=[0.1, 0.5], random_seed=1, progressbar=False)
    >>> audit.prob.dims, audit.property_delta.dims
    (('chain', 'draw', 'property'), ('chain', 'draw', 'property', 'epsilon'))
    >>> audit.dependent
    False
    """

    risk: ClassVar[str] = "risk of the critical entry"

    @property
    def prob(self) -> xr.DataArray:
        """The probability pi of every property, dims (chain, draw, property).

        Of dependent entries, the mean of its Beta distribution.
        """
        return self._posterior["prob"]

    @property
    def concentration(self) -> xr.DataArray:
        """The concentration alpha + beta of pi's Beta distribution, dims (chain, draw, property).

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
    def against_whom(self) -> str:
        """Against whom the risk is, in words."""
        return who_knows(int(self.settings.get("known") or 0))

    @property
    def opponent(self) -> str:
        """Against whom the risk is, and what is answered, in a sentence."""
        return f"{super().opponent[:-1]}; the answer is the share of entries that have it."

    @property
    def dependent(self) -> bool:
        """Whether the curve is that of exchangeable, dependent entries."""
        return "concentration" in self._posterior
