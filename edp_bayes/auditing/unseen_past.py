"""Audits against an adversary who has seen of earlier answers what was published of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from edp_bayes.coupling.views.unseen_past import PastCoupling

if TYPE_CHECKING:
    from edp_bayes.coupling.base import Coupling
    from edp_bayes.models.regression import InQuestion, Regression
    from edp_bayes.models.sampling import SamplerSettings

__all__ = ["with_pasts"]


def with_pasts(
    coupling: Coupling,
    regression: Regression | None,
    in_question: InQuestion | None,
    settings: SamplerSettings,
) -> Coupling:
    """Return the coupling of an answer whose past is known as far as it was published.

    Each draw's own coefficients of the lags say by how much each past moves the answer, from where
    the mean of the pasts puts it. The coupling itself is returned where the past is known in full.
    """
    if regression is None or in_question is None or regression.known.pasts is None:
        return coupling
    pasts = regression.known.pasts
    size = pasts.mean.size
    lags = in_question.coefficients[..., :size].reshape(-1, size)
    effect = lags @ (pasts.answers - pasts.mean).T
    rng = settings.generator("pasts")
    return PastCoupling.of(coupling, effect, pasts.spell, regression.units.spread, rng)
