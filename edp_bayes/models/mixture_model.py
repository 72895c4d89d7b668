"""What the two mixtures with a base measure share: their PyMC model, and how it is drawn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from edp_bayes.coupling.contributions.dominance import dominant_individuals, fit_without
from edp_bayes.coupling.regression import RegressionCoupling
from edp_bayes.diagnostics.truncation import Truncation
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.models.atoms import OfAtoms, add_atoms
from edp_bayes.models.base import (
    NAMES,
    FittedModel,
    OfRounded,
    ShortRepr,
    database_log_likelihood,
    diverging_mixture,
    fitted_mixture,
    in_question_from,
    mixture_from,
    parts_of,
    regression_draws,
)
from edp_bayes.models.base_measure import (
    MADE_OF,
    BaseMeasure,
    assumed,
    observe,
    priors_of,
    units_of,
)
from edp_bayes.models.coupled import (
    CoupledMixture,
    coupled_mixture,
    drawn_of,
    group_of,
    posterior_of,
    with_atoms,
)
from edp_bayes.models.log_prior import from_pymc
from edp_bayes.models.prior_draws import prior_of_mixture
from edp_bayes.models.priors import Priors
from edp_bayes.models.regression import SHIFT, Regression, regression_on
from edp_bayes.models.rest import draw_rest
from edp_bayes.models.sampling import SamplerSettings, sample_nuts
from edp_bayes.responses.joined import JointResponses
from edp_bayes.utils import validate

if TYPE_CHECKING:
    import xarray as xr

    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.models.contributions import ToSource
    from edp_bayes.responses.responses import Responses

__all__ = ["MixtureModel"]


class MixtureModel(ShortRepr, OfRounded, OfAtoms, ABC):
    """A mixture whose components have a base measure; the weights are a subclass's."""

    kernel: str
    base_measure: BaseMeasure
    priors: Mapping[str, Any]

    remedy: ClassVar[str]

    @abstractmethod
    def _coords(self, responses: Responses) -> dict[str, Any]:
        """Return the coordinates of the PyMC model."""

    @abstractmethod
    def _weights(self, priors: Priors, size: int) -> Any:
        """Add the variables of the weights to the current PyMC model, and return the weights."""

    @abstractmethod
    def _by_gibbs(self, data: Responses | Regression, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior by Gibbs sampling."""

    @abstractmethod
    def attributes(self, responses: Responses) -> dict[str, Any]:
        """Return what to record of this model."""

    def _truncated(self, tree: xr.DataTree, responses: Responses) -> tuple[Truncation, ...]:
        """Return what was cut off of infinitely many components."""
        return ()

    def build(
        self,
        responses: Responses | JointResponses,
        regression: Regression | None = None,
        *,
        adversary: Adversary | None = None,
        at: Any = None,
    ) -> Any:
        """Return the PyMC model, with weights, locations and scales as named deterministics.

        Given what an adversary knows at a database, as for `edp_bayes.audit`, or the regression on
        it, they are those of its residuals, in its units. Of several queries, as `Responses.join`
        makes them, the deterministics are weights, locations and roots of the covariances, of
        whitened responses or residuals; see docs/models/several_queries.md.
        """
        import pymc as pm

        if isinstance(responses, JointResponses):
            from edp_bayes.models.joint import build_joint_model

            return build_joint_model(self, responses, adversary=adversary, at=at)
        if (given := regression_on(responses, adversary, at)) is not None:
            responses, regression = given.known.responses, given
        whole, responses = responses, responses.on_scale
        priors = priors_of(self, regression)
        coords = self._coords(responses)
        with pm.Model(coords=coords) as model:
            weights = self._weights(priors, len(coords["component"]))
            weights = pm.Deterministic("weights", weights, dims="component")
            locations, scales = self.base_measure.build(
                *units_of(self.base_measure, responses, regression),
                self.kernel,
                priors,
            )
            observe(responses, weights, locations, scales, self.kernel, regression)
        add_atoms(model, whole)
        return model

    def to_mixture(
        self,
        draws: Any,
        responses: Responses,
        *,
        adversary: Adversary | None = None,
        at: Any = None,
        joint: Any = None,
        random_seed: int | None = None,
    ) -> CoupledMixture:
        """Return p and every p_i of draws of the PyMC model that `build` returns.

        Contributions are known by empirical Bayes, as in an audit by this model.

        Parameters
        ----------
        draws : DataTree, InferenceData or Dataset
            With a group posterior of dims chain and draw, or that group itself.
        responses : Responses
            What `build` was given.
        adversary, at : optional
            What `build` was given.
        joint : DataTree, InferenceData or Dataset, optional
            Draws of the model given that adversary, where `draws` are of the density alone: of
            ``build(first.responses)`` with ``first = to_mixture(joint, ...)``. An audit draws the
            density so, and its trace has both: give it as `draws`.
        random_seed : int, optional
            Of the contributions: that of an audit gives its numbers. By default 0.

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
        if joint is not None:
            draws = self._beside(draws, joint, responses, adversary, at)
        tree, data = drawn_of(draws, responses, adversary, at)
        seed = validate.seed(random_seed) or 0
        drawn = self.coupled(tree, data, seed)
        return with_atoms(
            replace(drawn, apart=tuple(dominant_individuals(drawn.responses).tolist())),
            responses,
            tree,
            seed,
        )

    def _beside(
        self, draws: Any, joint: Any, responses: Responses, adversary: Adversary | None, at: Any
    ) -> xr.DataTree:
        """Return draws of a density with those of the regression that it is of."""
        import xarray as xr

        if adversary is None:
            raise InvalidInputError("joint are draws given an adversary: give adversary=, too")
        tree, data = drawn_of(joint, responses, adversary, at)
        assert isinstance(data, Regression)
        found = in_question_from(tree, self.kernel, data).of_regression(data)
        groups = {"posterior": posterior_of(draws).assign(found)}
        observed = group_of(draws, "observed_data")
        return xr.DataTree.from_dict(
            groups if observed is None else groups | {"observed_data": observed}
        )

    def coupled(
        self,
        tree: xr.DataTree,
        data: Responses | Regression,
        seed: int,
        source: ToSource | None = None,
    ) -> CoupledMixture:
        """Return p and every p_i of draws, with contributions of a source."""
        responses, regression = parts_of(data)
        mixture, posterior = mixture_from(tree, self.kernel, NAMES), tree["posterior"].to_dataset()
        if regression is not None and SHIFT in posterior:
            coefficients, growth = regression_draws(posterior, regression)
            drawn = coupled_mixture(mixture, regression.in_question(posterior), seed, source=source)
            return regression.taken_to_scale(
                drawn,
                database_log_likelihood(mixture, drawn.responses),
                middle=coefficients.mean(axis=(0, 1)),
                coefficients=coefficients,
                growth=growth,
                shift=posterior[SHIFT].transpose("chain", "draw").to_numpy(),
                seed=seed,
            )
        question = None if regression is None else in_question_from(tree, self.kernel, regression)
        return coupled_mixture(mixture, responses, seed, in_question=question, source=source)

    def fit(self, responses: Responses, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior, by Gibbs sampling where the kernel is Gaussian.

        The same posterior is drawn by NUTS for other kernels, and where the settings ask for it.
        """
        return self._fit(responses, settings)

    def fit_given(self, regression: Regression, settings: SamplerSettings) -> FittedModel:
        """Draw from the posterior of the residuals' distribution and of the regression."""
        return regression.refined(self, self._fit(regression, settings), settings)

    def _fit(self, data: Responses | Regression, settings: SamplerSettings) -> FittedModel:
        modelled = data if isinstance(data, Regression) else data.on_scale
        if settings.by_gibbs(self.kernel, self.priors):
            return self._by_gibbs(modelled, settings)
        model = self.build(*parts_of(data))
        fitted = self.from_draws(model, sample_nuts(model, settings), modelled, settings)
        if isinstance(modelled, Regression):  # of a joint fit no more is taken than the regression
            return fitted
        return self._with_dominant(fitted, modelled, settings)

    def _with_dominant(
        self, fitted: FittedModel, responses: Responses, settings: SamplerSettings
    ) -> FittedModel:
        """Take the distribution without each dominant individual from draws of its own."""
        shape = fitted.mixture.weights.shape[:2]
        without = fit_without(
            responses, shape, partial(draw_rest, self.of_rest, responses, settings)
        )
        assert isinstance(fitted.coupling, RegressionCoupling)
        return replace(fitted, coupling=replace(fitted.coupling, without=without))

    @property
    def of_rest(self) -> MixtureModel:
        """Model of the response without an individual, of which nothing in its units is known."""
        assert isinstance(self.priors, Priors)
        base = replace(self.base_measure, narrowest=None)
        return replace(  # type: ignore[type-var]
            self, base_measure=base, priors=self.priors.without(*MADE_OF)
        )

    def from_draws(
        self,
        model: Any,
        tree: xr.DataTree,
        data: Responses | Regression,
        settings: SamplerSettings,
        drawn: CoupledMixture | None = None,
    ) -> FittedModel:
        """Return what was fitted, from draws of the PyMC model.

        And of p and every p_i that they make, where these have contributions of their own.
        """
        responses, regression = parts_of(data)
        return fitted_mixture(
            drawn or self.coupled(tree, data, settings.random_seed or 0),
            settings,
            tree=tree,
            prior=partial(prior_of_mixture, model, settings, self.kernel, NAMES, regression),
            log_prior=from_pymc(model, tree),
            attributes=self.attributes(responses) | assumed(self.base_measure, data),
            remedy=self.remedy,
            diverging=diverging_mixture(self.kernel),
            truncated=self._truncated(tree, responses),
        )
