"""The full posterior: one PyMC model of the response and of how all individuals contribute."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from edp_bayes.coupling.contributions.dominance import dominant_individuals, fit_without
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.distributions.mixtures import Mixture
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.models.atoms import OfAtoms, add_atoms
from edp_bayes.models.base import (
    FittedModel,
    ShortRepr,
    models_rounding,
    parts_of,
    require_variables,
)
from edp_bayes.models.contribution_data import Held
from edp_bayes.models.contribution_model import (
    OBSERVED,
    SUPPORTS,
    add_contributions,
    new_contributions,
)
from edp_bayes.models.contributions import (
    CONTRIBUTIONS,
    drawn_contributions,
    drawn_without_regression,
)
from edp_bayes.models.coupled import CoupledMixture, drawn_of, with_atoms
from edp_bayes.models.custom import PyMCMixture
from edp_bayes.models.dirichlet_process import DirichletProcessMixture
from edp_bayes.models.finite_mixture import FiniteMixture
from edp_bayes.models.predicted import predicted_by
from edp_bayes.models.priors import Priors
from edp_bayes.models.regression import regression_on, stretched
from edp_bayes.models.rest import draw_rest
from edp_bayes.models.sampling import SamplerSettings, sample_nuts
from edp_bayes.utils import validate
from edp_bayes.utils.arrays import Array

if TYPE_CHECKING:
    import numpy as np
    import xarray as xr

    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.coupling.contributions.drawn import DrawnContributions
    from edp_bayes.models.regression import Regression
    from edp_bayes.responses.responses import Responses

__all__ = ["FullPosterior"]

NEW = "new individual"  # the stream of their random numbers
TARGET_ACCEPT = 0.9  # of NUTS: the fewest steps for an effective draw without divergences


@dataclass(frozen=True, repr=False)
class FullPosterior(ShortRepr, OfAtoms):
    """One PyMC model of the response and of all contributions, drawn together by NUTS.

    The other mixture models know contributions by empirical Bayes: the pools of all individuals
    are estimated, not drawn. Here pools have priors, and p and every p_i of a draw are of the same
    draw. It is meant for up to some hundred individuals: 50 in 41 databases took a minute and a
    half on two cores, 100 took four.

    Parameters
    ----------
    density : DirichletProcessMixture, FiniteMixture or PyMCMixture
        Model of the response, of Gaussian components. Its variables are part of the whole.
    priors : mapping of str to distribution
        In the place of those of some pools of contributions, such as ``{"size_middle":
        pm.Normal.dist(0.0, 1.0)}``, of PyMC or PreliZ: size_middle, size_between, angle_middle,
        angle_between, presence_middle, presence_between and presence_tilted, and given what an
        adversary knows change_between, again_middle and again_between; see
        docs/models/your_own.md. Those of the density's variables become its own.

    Raises
    ------
    InputTypeError
        If the density is none of these, or a prior is no distribution.
    InvalidInputError
        If its kernel is not Gaussian, or there is no pool of a name; when fitted, if a query is
        randomised, contributions of some individuals were not collected, there are more than 2,000
        individuals, or an adversary knows something and the density is a PyMCMixture.

    See Also
    --------
    DirichletProcessMixture : the default model of an audit
    PyMCMixture : a PyMC model of your own
    edp_bayes.audit : audit a query

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> c = np.random.default_rng(1).gamma(2.0, 1.0, (20, 3))
    >>> responses = edp.Responses.from_arrays(c.sum(axis=1), contribution=c)
    >>> model = edp.FullPosterior(edp.FiniteMixture()).build(responses)
    >>> [variable.name for variable in model.observed_RVs]
    ['response', 'present', 'contribution']
    """

    density: Any = field(default_factory=DirichletProcessMixture)
    priors: Mapping[str, Any] = field(default_factory=Priors)

    def __post_init__(self) -> None:
        if not isinstance(self.density, DirichletProcessMixture | FiniteMixture | PyMCMixture):
            raise InputTypeError(
                "density must be a DirichletProcessMixture, FiniteMixture or PyMCMixture, found "
                f"{self.density!r}"
            )
        if self.kernel != "gaussian":
            raise InvalidInputError(
                f"FullPosterior takes Gaussian components, found kernel = {self.kernel!r}: leave "
                "kernel= out"
            )
        own = isinstance(self.density, PyMCMixture)
        if own and self.density != PyMCMixture(self.density.build):
            raise InvalidInputError(
                "FullPosterior takes a PyMCMixture whose variables are weights, locations and "
                "scales, without contributions of its own, found other names or contributions="
            )
        object.__setattr__(self, "priors", self._taken_from(self.priors))

    def __repr__(self) -> str:
        """Return the density and what priors were given."""
        if not self.priors:
            return super().__repr__()
        assert isinstance(self.priors, Priors)
        return f"FullPosterior({self.density!r}, {', '.join(self.priors.described)})"

    def _taken_from(self, priors: Mapping[str, Any]) -> Priors:
        """Return the priors of pools, and give those of the density's variables to it."""
        density = getattr(self.density, "parameters", {})
        given = Priors(priors, {**SUPPORTS, **density})
        if own := [name for name in given if name in density]:
            theirs = given.without(*SUPPORTS)
            object.__setattr__(
                self, "density", replace(self.density, priors={**self.density.priors, **theirs})
            )
        return given.without(*own)

    @property
    def kernel(self) -> str:
        """Family of every component: gaussian."""
        return str(self.density.kernel)

    def models_rounding(self, responses: Responses) -> bool:
        """Return whether the model of the response is one of what was rounded."""
        return models_rounding(self.density, responses)

    def build(
        self, responses: Responses, *, adversary: Adversary | None = None, at: Any = None
    ) -> Any:
        """Return the PyMC model.

        Parameters
        ----------
        responses : Responses
            The query's responses with and without each individual.
        adversary : Adversary, optional
            What they know beside the response: then weights, locations and scales are those of the
            residuals of a regression, in its units, and contributions are as at the database in
            question.
        at : label, optional
            The database in question; the next one, after all of them, if not given.

        Returns
        -------
        pymc.Model
            Data are ``pm.Data``; see docs/models/your_own.md for their names.
        """
        regression = regression_on(responses, adversary, at)
        return self._built(responses if regression is None else regression)

    def to_mixture(
        self,
        draws: Any,
        responses: Responses,
        *,
        adversary: Adversary | None = None,
        at: Any = None,
        random_seed: int | None = None,
    ) -> CoupledMixture:
        """Return p and every p_i of draws of the PyMC model that `build` returns.

        This is what an audit by this model evaluates.

        Parameters
        ----------
        draws : DataTree, InferenceData or Dataset
            With a group posterior of dims chain and draw, or that group itself.
        responses : Responses
            What `build` was given.
        adversary, at : optional
            What `build` was given.
        random_seed : int, optional
            Of an individual not in the sample. No pair depends on it.

        Returns
        -------
        CoupledMixture
            Without dominant individuals, whose p_i an audit draws apart.

        Raises
        ------
        InvalidInputError, InputTypeError
            If the draws are not of such a model, or say that they are of other responses.

        See Also
        --------
        CoupledMixture : what is returned

        Notes
        -----
        Of answers that are rounded p is the distribution of what was rounded, of those with atoms
        that of all other answers, and on the scale of a transform if there is one.
        """
        tree, data = drawn_of(draws, responses, adversary, at)
        seed = validate.seed(random_seed) or 0
        rng = SamplerSettings(random_seed=seed).generator(NEW)
        return with_atoms(self._coupled(tree, self._held(data), rng), responses, tree, seed)

    def _coupled(self, tree: xr.DataTree, held: Held, rng: np.random.Generator) -> CoupledMixture:
        """Return p and every p_i of draws, those of dominant individuals apart."""
        posterior = tree["posterior"].to_dataset()
        require_variables(CONTRIBUTIONS, posterior.data_vars, " of contributions")

        def source(mixture: Mixture, responses: Responses) -> DrawnContributions:
            new = new_contributions(posterior, mixture, held, rng)
            return drawn_contributions(posterior, mixture.weights, responses, new=new)

        given = held.responses if held.regression is None else held.regression
        found: CoupledMixture = self.density.coupled(tree, given, 0, source)
        return replace(found, apart=tuple(dominant_individuals(found.responses).tolist()))

    def fit(self, responses: Responses, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior by NUTS.

        The distribution without an individual whose contributions have at least half the variance
        of the response is drawn apart, from the responses without them.
        """
        return self._fit(responses, settings)

    def fit_given(self, regression: Regression, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior of the regression, its residuals and contributions by NUTS."""
        return self._fit(regression, settings)

    def _held(self, data: Responses | Regression) -> Held:
        from edp_bayes.responses.responses import Responses

        if isinstance(data, Responses):
            return Held.of(data.on_scale)
        if isinstance(self.density, PyMCMixture):
            raise drawn_without_regression(self)
        return Held.of(data.known.responses, data)

    def _built(self, data: Responses | Regression) -> Any:
        held = self._held(data)
        given = () if held.regression is None else (held.regression,)
        model = self.density.build(held.responses, *given)
        add_contributions(model, held, self.priors)
        add_atoms(model, parts_of(data)[0])
        return model

    def _fit(self, data: Responses | Regression, settings: SamplerSettings) -> FittedModel:
        held = self._held(data)
        model = self._built(data)
        settings = settings.accepting(TARGET_ACCEPT)
        tree = sample_nuts(model, settings)
        drawn = self._coupled(tree, held, settings.generator(NEW))
        given = held.responses if held.regression is None else held.regression
        fitted: FittedModel = self.density.from_draws(model, tree, given, settings, drawn)
        assert isinstance(fitted.coupling, RegressionCoupling)
        without = self._without(fitted, held, settings)
        return replace(
            fitted,
            coupling=replace(fitted.coupling, without=without),
            predicted=partial(predicted_by, model, tree, OBSERVED, settings),
            attributes={**fitted.attributes, "model": repr(self), "contributions": "full Bayes"},
            remedy=f"see what {self.density!r} says",
            diverging="Take DirichletProcessMixture(), which Gibbs sampling draws.",
        )

    def _without(
        self, fitted: FittedModel, held: Held, settings: SamplerSettings
    ) -> dict[int, Mixture]:
        """Draw the distribution without each dominant individual, at the database in question."""
        question = fitted.in_question
        responses = held.responses if question is None else question.responses
        own = isinstance(self.density, PyMCMixture)
        of_rest = self.density if own else self.density.of_rest

        def draw(y: Array, stream: str) -> Mixture:
            found = draw_rest(of_rest, responses, settings, y, stream)
            if question is None or held.regression is None:
                return found
            # as every draw of the growth has it, about the mean of what was drawn from
            factor = held.regression.growth(question.growth - question.growth.mean())
            return stretched(found, factor, float(y.mean()))

        shape = fitted.mixture.weights.shape[:2]
        return fit_without(responses, shape, draw)
