"""How a posterior draw becomes p and every p_i: mixtures of the same draw, tied to each other."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.atoms import beside_atoms
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.utils import labels, validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    from collections.abc import Mapping

    import xarray as xr

    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.coupling.base import Coupling
    from edp_bayes.models.contributions import ToSource
    from edp_bayes.models.regression import InQuestion, Regression
    from edp_bayes.responses.responses import Responses

__all__ = [
    "CoupledMixture",
    "coupled_mixture",
    "drawn_from",
    "drawn_of",
    "group_of",
    "posterior_of",
    "with_atoms",
]

LEADING = ("chain", "draw")


@dataclass(frozen=True, eq=False)
class CoupledMixture:
    """The response's distribution p and those without each individual, p_i, draw by draw.

    What `to_mixture` of a model returns, and what an audit evaluates.

    Parameters
    ----------
    mixture : Mixture
        Shape (chain, draw, component): p, without the known noise of a release.
    coupling : Coupling
        Ties p_i to it, individual by individual.
    responses : Responses
        What the draws are of, on the scale that is modelled; given what an adversary knows, as they
        would be in the database in question.
    in_question : InQuestion, optional
        That database, where an adversary knows something.
    apart : tuple of int
        Positions of individuals whose p_i needs draws of its own, which are not here.

    See Also
    --------
    FullPosterior : response and contributions in one PyMC model
    edp_bayes.hockey_stick : the risk of a pair of mixtures
    edp_bayes.audit : all of it at once

    Examples
    --------
    >>> import numpy as np, xarray as xr
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> own = rng.gamma(2.0, 0.1, (40, 3))
    >>> responses = edp.Responses.from_arrays(
    ...     rng.normal(10.0, 1.0, 40) + own.sum(axis=1), contribution=own
    ... )
    >>> posterior = xr.Dataset({  # as pm.sample returns it
    ...     "weights": (("chain", "draw", "component"), np.ones((2, 50, 1))),
    ...     "locations": (("chain", "draw", "component"), rng.normal(10.6, 0.2, (2, 50, 1))),
    ...     "scales": (("chain", "draw", "component"), rng.uniform(0.8, 1.2, (2, 50, 1))),
    ... })
    >>> drawn = edp.FiniteMixture().to_mixture(posterior, responses, random_seed=1)
    >>> p, p_i = drawn.pair(2)
    >>> edp.hockey_stick(p, p_i, epsilon=[0.1, 0.5]).shape
    (2, 50, 2)
    """

    mixture: Mixture
    coupling: Coupling = field(repr=False)
    responses: Responses
    in_question: InQuestion | None = field(default=None, repr=False)
    apart: tuple[int, ...] = ()

    def pair(self, individual: Any) -> tuple[Mixture, Mixture]:
        """Return p and p_i of one individual, of the same draws.

        Both have the same components in the same order. For an individual sometimes absent each
        component of p is split: into that in their absence, which p_i has, too, and that in their
        presence.

        Parameters
        ----------
        individual : label
            As in the responses.

        Returns
        -------
        tuple of Mixture
            Shapes (chain, draw, component), known noise included. The larger of
            ``hockey_stick(p, p_i, epsilon=...)`` and ``hockey_stick(p_i, p, epsilon=...)`` is the
            individual's risk in each draw.

        Raises
        ------
        InvalidInputError
            If nobody has this label, their contributions were not collected, or their p_i needs
            draws of its own, because they have at least half the variance of the response.
        """
        return self.coupling.pair(self._position(individual))

    def risk(self, individual: Any, *, epsilon: ArrayLike) -> Array:
        """Return delta_i(epsilon) of one individual in every draw.

        Parameters
        ----------
        individual : label
            As in the responses.
        epsilon : array_like
            One, or a grid of shape (epsilon,): increasing, not negative.

        Returns
        -------
        ndarray
            Shape (chain, draw, epsilon), of one epsilon (chain, draw): the larger risk of both
            directions of `pair`; of answers with atoms that of atoms and density together.

        Raises
        ------
        InvalidInputError, InputTypeError
            As `pair`, or if epsilon is no such grid.
        """
        position, grid = np.array([self._position(individual)]), validate.epsilon_grid(epsilon)
        curves = self.coupling.curves(position, grid)
        return np.asarray(curves.reshape(*self.mixture.weights.shape[:2], *np.shape(epsilon)))

    def _position(self, individual: Any) -> int:
        """Return where they are among all; refuse those whose p_i needs draws of its own."""
        position = self.responses.index_of(individual)
        if position in self.apart:
            raise InvalidInputError(
                f"individual {labels.show(individual)} has at least half the variance of the "
                "response, and the distribution without them is drawn apart, from the responses "
                "without them: take it of edp.audit, which does so, or ask for others"
            )
        return position


def coupled_mixture(
    mixture: Mixture,
    responses: Responses,
    seed: int,
    *,
    in_question: InQuestion | None = None,
    without: Mapping[int, Mixture] | None = None,
    source: ToSource | None = None,
    apart: tuple[int, ...] = (),
) -> CoupledMixture:
    """Couple the draws of a mixture model to the distribution without each individual.

    Contributions are those of a source; if not given they are known by empirical Bayes, see
    `edp_bayes.coupling.contributions.posterior.ContributionPosterior`. Given what an adversary
    knows mixture and responses are those of the database in question.
    """
    if in_question is not None:
        mixture, responses = in_question.mixture, in_question.responses
    coupling = RegressionCoupling.fit(
        mixture,
        responses,
        seed,
        without,
        source=None if source is None else source(mixture, responses),
    )
    return CoupledMixture(mixture, coupling, responses, in_question, apart)


def with_atoms(
    drawn: CoupledMixture, responses: Responses, tree: xr.DataTree, seed: int
) -> CoupledMixture:
    """Return the same with the atoms of all answers, if there are any, beside their density."""
    settings = SamplerSettings(random_seed=seed)
    posterior = tree["posterior"].to_dataset()
    whole = beside_atoms(drawn.coupling, responses, posterior, settings)
    return replace(drawn, coupling=whole)


def group_of(draws: Any, name: str) -> xr.Dataset | None:
    """Return a group of draws as a data set; None where there is none."""
    import xarray as xr

    if isinstance(draws, xr.Dataset):
        return draws if name == "posterior" else None
    if isinstance(draws, xr.DataTree):
        if name in draws.children:
            return draws[name].to_dataset()
        if not _is_posterior(draws):
            return None
        if name == "posterior":
            return draws.to_dataset()
        return None if draws.parent is None else group_of(draws.parent, name)
    found = getattr(draws, name, None)  # ArviZ's InferenceData, where that is installed
    return found if isinstance(found, xr.Dataset) else None


def _is_posterior(tree: xr.DataTree) -> bool:
    """Return whether this is the group posterior of a tree, as ``tree["posterior"]`` is."""
    return tree.name in (None, "posterior") and set(LEADING) <= set(tree.dims)


def posterior_of(draws: Any) -> xr.Dataset:
    """Return the posterior of draws.

    Raises
    ------
    InputTypeError
        If they are no DataTree, InferenceData or Dataset.
    InvalidInputError
        If there are no dims chain and draw.
    """
    posterior = group_of(draws, "posterior")
    if posterior is None:
        groups = ", ".join(map(str, getattr(draws, "children", ())))
        raise InputTypeError(
            "draws must be a DataTree or InferenceData with a group posterior, or that group, "
            f"found {type(draws).__name__}" + (f" with the groups {groups}" if groups else "")
        )
    if any(name not in posterior.dims for name in LEADING):
        raise InvalidInputError(
            "the posterior must have dims chain and draw, found "
            + ", ".join(map(str, posterior.dims))
        )
    return posterior


def drawn_of(
    draws: Any, responses: Responses, adversary: Adversary | None, at: Any
) -> tuple[xr.DataTree, Responses | Regression]:
    """Return draws of a model that `build` returned, and what it was built of.

    Or of one of the responses in question, beside draws of the regression, as an audit has them.
    """
    from edp_bayes.models.regression import SHIFT, regression_on

    regression = regression_on(responses, adversary, at)
    if regression is None:
        return drawn_from(draws, responses.on_scale), responses.on_scale
    posterior = posterior_of(draws)
    if SHIFT in posterior:
        return drawn_from(draws, regression.in_question(posterior)), regression
    return drawn_from(draws, regression.known.responses), regression


def drawn_from(draws: Any, *responses: Responses) -> xr.DataTree:
    """Return draws as a tree with their posterior, and refuse those of other responses.

    Parameters
    ----------
    draws : DataTree, InferenceData or Dataset
        With a group posterior, or that group itself.
    *responses : Responses
        What they may be of, the same on one scale or another.

    Raises
    ------
    InputTypeError, InvalidInputError
        As `posterior_of`; and if their ``observed_data`` has a ``response`` that is none of these.
    """
    import xarray as xr

    tree = xr.DataTree.from_dict({"posterior": posterior_of(draws)})
    observed = group_of(draws, "observed_data")
    if observed is None or "response" not in observed:
        return tree
    theirs = observed["response"].to_numpy().ravel()
    for one in responses:
        ours = one.response
        if theirs.shape == ours.shape and np.allclose(theirs, ours, rtol=1e-6):
            return tree
    first = responses[0].response
    raise InvalidInputError(
        f"the draws are of {theirs.size} other responses (observed_data['response'] begins "
        f"with {theirs[0]:.6g}), and here are {first.size} that begin with "
        f"{first[0]:.6g}: give those that the draws are of, or leave this "
        "variable out if it is on another scale"
    )
