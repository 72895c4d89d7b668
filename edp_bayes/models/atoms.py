"""The shares of atoms in a PyMC model, and their draws beside those of the density.

How often an answer is each atom, or none, is multinomial, and says nothing of the density of all
other answers. With the prior Dirichlet(1/2, ..., 1/2) its posterior is one, too: a sampler that has
no variable of these shares draws them apart, from the same posterior.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from edp_bayes.coupling.atoms import JEFFREYS, AtomCoupling
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.responses.atoms import at_atoms

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.coupling.base import Coupling
    from edp_bayes.models.sampling import SamplerSettings
    from edp_bayes.responses.responses import Responses

__all__ = ["ATOM_SHARE", "OfAtoms", "add_atoms", "beside_atoms", "shares_of"]

ATOM_SHARE = "atom_share"
COUNT, OTHER, DIM = "atom_count", "other", "answer"
LEAD = ("chain", "draw")
ROUNDING = 1e-6


class OfAtoms:
    """Base of a model that takes answers with atoms whole: its PyMC model has their shares.

    Any other is given the answers at no atom.

    Examples
    --------
    >>> import edp_bayes as edp
    >>> isinstance(edp.FiniteMixture(), OfAtoms), isinstance(edp.SmoothedBootstrap(), OfAtoms)
    (True, False)
    """


def add_atoms(model: Any, responses: Responses) -> None:
    """Add the shares of atoms to a PyMC model of the answers at none, if there are atoms.

    The variable ``atom_share`` and the observed ``atom_count`` lie along ``answer``: every atom, by
    its value as text, and ``other``. How many answers there are of each is ``pm.Data``.
    """
    if responses.atoms is None:
        return
    import pymc as pm

    counts = at_atoms(responses)
    model.add_coords({DIM: _answers(responses)})
    with model:
        seen = pm.Data(
            f"{COUNT}_data", np.append(counts.count, counts.others).astype(np.int64), dims=DIM
        )
        share = pm.Dirichlet(ATOM_SHARE, np.full(counts.count.size + 1, JEFFREYS), dims=DIM)
        pm.Multinomial(COUNT, n=seen.sum(), p=share, observed=seen, dims=DIM)


def beside_atoms(
    density: Coupling, responses: Responses, posterior: xr.Dataset | None, settings: SamplerSettings
) -> Coupling:
    """Return the coupling of answers with atoms; that of the density where there are none.

    Parameters
    ----------
    density : Coupling
        Of the answers at no atom.
    responses : Responses
        All answers.
    posterior : xarray.Dataset, optional
        Draws, of which ``atom_share`` is taken; without it the shares are drawn.
    settings : SamplerSettings
        Whose stream of random numbers is used.

    Raises
    ------
    InvalidInputError
        If ``atom_share`` is no share of each atom and of all other answers.
    """
    if responses.atoms is None:
        return density
    seed = int(settings.generator("atoms").integers(2**32))
    drawn = None if posterior is None or ATOM_SHARE not in posterior else posterior[ATOM_SHARE]
    found = AtomCoupling.of(density, responses, seed)
    if drawn is None:
        return found
    shares = drawn.transpose(*LEAD, ...).to_numpy()
    shares = shares.reshape(shares.shape[0] * shares.shape[1], -1)
    wanted = (found.draws, found.known.size)
    whole = np.abs(shares.sum(axis=1) - 1.0).max() <= ROUNDING
    if shares.shape != wanted or shares.min() < 0.0 or not whole:
        raise InvalidInputError(
            f"{ATOM_SHARE} must be shares of {', '.join(_answers(responses))} in each draw, which "
            f"sum to one; found {shares.shape[1]} from {shares.min():g} to {shares.max():g}"
        )
    return found.given(shares)


def shares_of(coupling: AtomCoupling, responses: Responses, shape: tuple[int, ...]) -> xr.DataArray:
    """Return the draws of the shares, dims (chain, draw, answer), as a trace has them."""
    import xarray as xr

    return xr.DataArray(
        coupling.shares.reshape(*shape, -1), dims=(*LEAD, DIM), coords={DIM: _answers(responses)}
    )


def _answers(responses: Responses) -> list[str]:
    return [*at_atoms(responses).record, OTHER]
