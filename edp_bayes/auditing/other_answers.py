"""What other answers of the same data would leave of the largest risk, each by a fit of its own.

Two databases in one, and the same answer if nobody counted for more than nine contributions in ten
do. They are audited as the audit was, with fewer draws: those of a cell of a table.
"""

from __future__ import annotations

import json
import math
import warnings
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from edp_bayes.auditing.epsilon_at import CoupledCurves
from edp_bayes.exceptions import EdpBayesError, EdpBayesWarning, InvalidInputError
from edp_bayes.models.base import DensityModel
from edp_bayes.models.mixture_model import MixtureModel
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.models.smoothed_bootstrap import SmoothedBootstrap
from edp_bayes.responses.changed import cuts, limited, require_sum, together
from edp_bayes.responses.responses import Responses
from edp_bayes.utils.defaults import CELL_CHAINS, CELL_DRAWS, CELL_KEEP, CELL_TUNE

if TYPE_CHECKING:
    from edp_bayes.adversary.adversary import Adversary
    from edp_bayes.results.query import Audit

__all__ = ["AuditedAgain", "of_longer", "other_answers_of"]

# Individuals up to whom a fit of its own takes a few seconds, databases that become one, and the
# share of contributions above which these are cut.
PEOPLE, COUNT, SHARE = 50, 2, 0.9


@dataclass(frozen=True, eq=False)
class AuditedAgain:
    """How other answers of the same data are audited: as these were.

    Parameters
    ----------
    responses : Responses
        Those of the audit.
    model : DensityModel
        That it had.
    adversary : Adversary or None
        Against whom it is.
    settings : SamplerSettings
        With which it was drawn.
    """

    responses: Responses
    model: DensityModel
    adversary: Adversary | None
    settings: SamplerSettings

    @property
    def quick(self) -> bool:
        """Whether that takes seconds: few individuals, and no sampler of NUTS."""
        if self.responses.n_individuals > PEOPLE or self.responses.noise is not None:
            return False
        if isinstance(self.model, MixtureModel):
            return self.settings.by_gibbs(self.model.kernel, self.model.priors)
        return isinstance(self.model, SmoothedBootstrap)

    def longer(self, epsilon: np.ndarray) -> tuple[dict[str, Any], Audit]:
        """Return the audit of two databases in one."""
        from edp_bayes.adversary.timeline import Timeline

        require_sum(self.responses)
        Timeline.of(self.responses.database).require_order("a longer period")
        longer = together(self.responses, COUNT)
        found = self._audited(longer, of_longer(self.adversary, COUNT), epsilon)
        return {"answer": "period", "size": float(COUNT)}, found

    def limited(self, epsilon: np.ndarray) -> tuple[dict[str, Any], Audit]:
        """Return the audit of the answer if nobody counted for more than most contributions."""
        require_sum(self.responses)
        sizes, step = np.abs(self.responses.contribution.data), self.responses.step
        most = next(cuts(sizes, None if step is None else float(step), (SHARE,)), None)
        if most is None:
            raise InvalidInputError("no contribution is larger than most")
        found = self._audited(limited(self.responses, most), self.adversary, epsilon)
        return {"answer": "limit", "size": most}, found

    def _audited(
        self, responses: Responses, adversary: Adversary | None, epsilon: np.ndarray
    ) -> Audit:
        from edp_bayes.auditing.query import audit_for_verdict

        return audit_for_verdict(
            responses,
            epsilon=epsilon,
            model=self.model,
            adversary=adversary,
            draws=CELL_DRAWS,
            tune=CELL_TUNE,
            keep=CELL_KEEP,
            chains=CELL_CHAINS,
            random_seed=self.settings.random_seed,
            progressbar=False,
        )


def other_answers_of(audit: Audit) -> xr.Dataset | None:
    """Return what other answers would leave; see `edp_bayes.Audit.other_answers`."""
    source = audit.source
    if type(source) is not CoupledCurves or source.again is None or not source.again.quick:
        return None
    if not source.other_answers:
        found = _tried(source.again, source.epsilon)
        source.other_answers.append(_stacked(found, source.epsilon) if found else None)
    return source.other_answers[0]


def _tried(again: AuditedAgain, epsilon: np.ndarray) -> list[tuple[dict[str, Any], Audit]]:
    """Return every answer that there is, and its audit."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        for way in (again.longer, again.limited):
            # there may be no such answer: no order of time, or no sum
            with suppress(EdpBayesError):
                found.append(way(epsilon))
    return found


def _stacked(found: list[tuple[dict[str, Any], Audit]], epsilon: np.ndarray) -> xr.Dataset:
    shown = [audit.tree.get("resampled") for _, audit in found]
    size = max((one.sizes["sample"] for one in shown if one is not None), default=1)
    resampled = np.zeros((len(found), size, epsilon.size))
    for k, one in enumerate(shown):
        if one is not None:
            resampled[k] = one["delta"].transpose("sample", "epsilon")
    draws = [
        audit.delta.stack(sample=("chain", "draw")).transpose("sample", "epsilon").to_numpy()
        for _, audit in found
    ]
    return xr.Dataset(
        {
            "delta": (("answer", "sample", "epsilon"), np.stack(draws)),
            "resampled": (("answer", "resample", "epsilon"), resampled),
            "size": ("answer", [what["size"] for what, _ in found]),
            "databases": ("answer", [audit.settings["databases"] for _, audit in found]),
        },
        coords={"epsilon": epsilon},
        attrs={
            "answers": json.dumps([what["answer"] for what, _ in found]),
            "withheld": json.dumps([audit.withheld is not None for _, audit in found]),
        },
    )


def of_longer(adversary: Adversary | None, count: int) -> Adversary | None:
    """Return who knows the same of so many databases in one: their season has fewer then.

    Raises
    ------
    InvalidInputError
        If so few of them are a season that it cannot be seen, and are not whole seasons either.
    """
    if adversary is None or adversary.season is None or isinstance(adversary.season, str):
        return adversary
    season = float(adversary.season)
    if math.isclose(count / season, round(count / season), rel_tol=1e-9):
        # whole seasons, alike
        return replace(adversary, season=None)
    if season < 2.0 * count:
        raise InvalidInputError(
            f"a season of {season:g} databases is shorter than two of {count} in one"
        )
    return replace(adversary, season=season / count)
