"""How the risk grows with what an adversary knows: `edp.leakage`."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from edp_bayes.adversary.adversary import Adversary
from edp_bayes.auditing.query import audit
from edp_bayes.auditing.rounded import modelled_step
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.models.base import DensityModel
from edp_bayes.responses.responses import Responses
from edp_bayes.results import bands
from edp_bayes.utils import files, labels, validate
from edp_bayes.utils.arrays import Array, Index
from edp_bayes.utils.defaults import default_probability
from edp_bayes.utils.progress import track

if TYPE_CHECKING:
    import pandas as pd
    from arviz_plots import PlotCollection

    from edp_bayes.results.query import Audit

__all__ = ["Leakage", "leakage"]

PAST = (0, 1, 2, 4)
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 0.95)
CHAINS, TUNE = 2, 500
WATCHED = 5  # riskiest individuals, who are never insiders


@dataclass(frozen=True, eq=False)
class Leakage:
    """Risk at one epsilon over what an adversary knows.

    Made by `edp_bayes.leakage`.

    Parameters
    ----------
    tree : xarray.DataTree
        Groups past (dims past, draw) and insiders (dims insiders, draw), each with draws of delta
        and of a lower bound of it, as in an `Audit`; the draws of several seeds are pooled.

    See Also
    --------
    leakage : delta for adversaries who know more and more
    edp_bayes.plots.plot_leakage : delta over what is known
    Adversary : what is known beside the releases

    Examples
    --------
    >>> import numpy as np
    >>> import xarray as xr
    >>> from edp_bayes.auditing.leakage import Leakage
    >>> draws = np.linspace(0.01, 0.03, 99) * np.array([[1.0], [2.0]])
    >>> group = xr.Dataset({name: (("insiders", "draw"), draws) for name in ("delta", "below")},
    ...                    {"insiders": [0.0, 0.9]})
    >>> found = Leakage(xr.DataTree.from_dict({"insiders": group}))
    >>> found.insiders["median"].round(3).tolist()
    [0.02, 0.04]
    """

    tree: xr.DataTree

    @property
    def past(self) -> pd.DataFrame:
        """Median and pointwise band of delta for every number of earlier releases seen."""
        return self.table("past")

    @property
    def insiders(self) -> pd.DataFrame:
        """Median and pointwise band of delta for every share of insiders."""
        return self.table("insiders")

    @property
    def withheld(self) -> str | None:
        """For what the result establishes nothing, None where it does; audit against that to see.

        A file of a version that did not keep this establishes nothing.
        """
        if "withheld" not in self.tree.attrs:
            return "Not established. The file does not say which checks failed: compute it again."
        cases = json.loads(self.tree.attrs["withheld"])
        return f"Not established. {_unestablished(cases)}." if cases else None

    def table(self, of: str, *, prob: float | None = None) -> pd.DataFrame:
        """Return median, lower and upper end of delta.

        Parameters
        ----------
        of : {"past", "insiders"}
            Over what.
        prob : float, optional
            Probability of the pointwise band; ArviZ's ``stats.ci_prob`` if not given.

        See Also
        --------
        plot : the same as a picture
        leakage : delta for adversaries who know more and more
        """
        import pandas as pd

        found = [str(name) for name in self.tree.children]
        group = self.tree[validate.choice(of, found, "of")].to_dataset()
        probability = default_probability(prob)
        delta, below = (group[name].transpose("draw", of).to_numpy() for name in ("delta", "below"))
        lower, upper = bands.pointwise(delta, probability)
        return pd.DataFrame(
            {
                "median": np.median(delta, axis=0),
                "lower": np.minimum(lower, bands.pointwise(below, probability)[0]),
                "upper": upper,
            },
            index=pd.Index(group[of].to_numpy(), name=of),
        )

    def save(self, path: str | Path) -> Path:
        """Write to NetCDF (a name ending in .nc) or Zarr (.zarr); complete or not at all."""
        return files.save_tree(self.tree, Path(path))

    def plot(self, of: str | None = None, **options: Any) -> PlotCollection:
        """Plot delta over what is known; see `edp_bayes.plots.plot_leakage`."""
        from edp_bayes import plots

        return plots.plot_leakage(self, of=of, **options)


def leakage(
    responses: Responses,
    *,
    epsilon: float,
    adversary: Adversary | None = None,
    past: Sequence[int] | None = PAST,
    insiders: Sequence[float] | None = SHARES,
    seeds: int = 3,
    model: DensityModel | None = None,
    draws: int = 100,
    random_seed: int | None = None,
    progressbar: bool = True,
) -> Leakage:
    """Return delta at one epsilon for adversaries who know more and more.

    Each value is that of a quick audit with few draws: over the number of earlier releases seen,
    and over the share of insiders, who pool what they contributed, drawn at random several times.
    The riskiest without insiders, at most five, are never among these: of all shares the risk is
    that of the same individuals.
    Where all others are insiders nothing but the individual is random: that end is what classical
    differential privacy assumes, and there a query without noise hides nobody.

    Parameters
    ----------
    responses : Responses
        The query's responses with and without each individual.
    epsilon : float
        The one epsilon.
    adversary : Adversary, optional
        What is known otherwise; its own `past` is replaced over the past, its own insiders over
        insiders.
    past : sequence of int, optional
        Numbers of earlier releases seen, increasing; None to leave them out.
    insiders : sequence of float, optional
        Shares of insiders, increasing, each at least 0 and less than 1; None to leave them out, as
        one must for randomised queries.
    seeds : int
        How often insiders are drawn; the draws of all are pooled, so that bands also cover who
        they are.
    model : DensityModel, optional
        Distribution of the response; ``DirichletProcessMixture()`` if not given.
    draws : int
        Draws in each of the 2 chains of an audit.
    random_seed : int, optional
        The same seed gives the same numbers.
    progressbar : bool
        Show progress and the time it takes.

    Returns
    -------
    Leakage
        Tables and plots of both.

    Raises
    ------
    InvalidInputError, InputTypeError
        If an argument cannot be used, or there are too few databases for what is known.

    Warns
    -----
    EdpBayesWarning
        Once, if checks of an audit failed: audit against that adversary to see them.

    See Also
    --------
    Leakage : the risk over what is known
    Adversary : what is known beside the releases
    edp_bayes.plots.plot_leakage : delta over what is known

    Notes
    -----
    Every number is what `edp_bayes.audit` says of that adversary: more earlier releases leave fewer
    databases to be explained.

    Examples
    --------
    >>> import numpy as np
    >>> import edp_bayes as edp
    >>> rng = np.random.default_rng(1)
    >>> contribution = rng.normal(0.5, 1.0, (60, 8))
    >>> responses = edp.Responses.from_arrays(
    ...     contribution.sum(axis=1), contribution=contribution, additive=True
    ... )
    >>> found = edp.leakage(
    ...     responses, epsilon=0.1, past=None, insiders=[0.0, 0.75], seeds=2,
    ...     model=edp.FiniteMixture(), random_seed=1, progressbar=False,
    ... )
    >>> bool(found.insiders["median"][0.75] > found.insiders["median"][0.0])
    True
    """
    from edp_bayes.models.default import model_or_default

    if not isinstance(responses, Responses):
        raise InputTypeError(f"responses must be Responses, found {type(responses).__name__}")
    if adversary is not None and not isinstance(adversary, Adversary):
        raise InputTypeError(f"adversary must be an Adversary, found {adversary!r}")
    responses, unlike = modelled_step(responses, model_or_default(model))
    for sentence in unlike:
        warnings.warn(sentence, EdpBayesWarning, stacklevel=2)
    base = Adversary() if adversary is None else adversary
    level = validate.number(epsilon, "epsilon")
    seeds = validate.positive_integer(seeds, "seeds")
    releases, shares = _increasing(past, "past", int), _increasing(insiders, "insiders", float)

    def quick(known: Adversary, keep: int = 1) -> Audit:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EdpBayesWarning)
            return audit(
                responses,
                epsilon=[level],
                adversary=None if known.nothing else known,
                model=model,
                keep=keep,
                draws=draws,
                tune=TUNE,
                chains=CHAINS,
                random_seed=random_seed,
                progressbar=False,
            )

    for share in shares:
        Adversary(insiders=share)  # refuses what is no share
    cases = [("past", count, replace(base, past=count)) for count in releases]
    nobody = None
    if shares:
        nobody = quick(replace(base, insiders=()), WATCHED)
        others = _others(responses, nobody, max(shares))
        cases += [
            ("insiders", share, replace(base, insiders=_drawn(responses, others, share, seed)))
            for share in shares
            for seed in range(base.random_seed, base.random_seed + (seeds if share else 1))
        ]
    if not cases:
        raise InvalidInputError("nothing to compare: give past or insiders")
    found: dict[str, dict[Any, list[tuple[Array, Array]]]] = {}
    doubtful: list[str] = []
    for of, value, known in track(cases, "Audits", total=len(cases), show=progressbar):
        result = nobody if nobody is not None and of == "insiders" and value == 0 else quick(known)
        if result.withheld:
            doubtful.append(f"{of} {value:g}")
        below = result.tree["lower_bounds"]["delta"].to_numpy().ravel()
        found.setdefault(of, {}).setdefault(value, []).append(
            (result.delta.to_numpy().ravel(), below)
        )
    if doubtful:
        warnings.warn(_unestablished(doubtful), EdpBayesWarning, stacklevel=2)
    tree = xr.DataTree.from_dict({of: _group(of, values) for of, values in found.items()})
    tree.attrs |= {
        "holds": "leakage",
        "withheld": json.dumps(list(dict.fromkeys(doubtful))),
        "epsilon": level,
        "query": responses.query,
        "seeds": seeds,
        "fingerprint": responses.fingerprint,
        "given": "" if base.nothing else base.words,
    }
    return Leakage(tree)


def _unestablished(cases: Sequence[str]) -> str:
    return (
        f"Audits establish nothing for {', '.join(dict.fromkeys(cases))}: checks failed; audit "
        "against these adversaries to see which"
    )


def _others(responses: Responses, without: Audit, most: float) -> Index:
    """Return who may be an insider, by sorted labels: all but the riskiest."""
    people = responses.n_individuals
    free = max(1, min(WATCHED, people - round(most * people)))
    riskiest = without.individual_delta["individual"].to_numpy()[:free]
    watched = np.isin(labels.as_coordinate(responses.individual), riskiest)
    return responses.order[~watched[responses.order]]


def _drawn(responses: Responses, others: Index, share: float, seed: int) -> tuple[Any, ...]:
    """Return insiders drawn at random; those of a larger share are more of the same."""
    count = min(round(share * responses.n_individuals), others.size)
    chosen = others[np.random.default_rng(seed).permutation(others.size)[:count]]
    return tuple(responses.individual[chosen].tolist())


def _group(of: str, values: dict[Any, list[tuple[Array, Array]]]) -> xr.Dataset:
    """Return the draws for every value, those of one value repeated until all have as many."""
    parts = {
        name: [np.concatenate([pair[k] for pair in pairs]) for pairs in values.values()]
        for k, name in enumerate(("delta", "below"))
    }
    most = {name: max(part.size for part in column) for name, column in parts.items()}
    size = max(most.values())
    return xr.Dataset(
        {
            name: ((of, "draw"), [np.resize(part, size) for part in column])
            for name, column in parts.items()
        },
        coords={of: list(values)},
    )


def _increasing(values: Iterable[Any] | None, name: str, kind: type) -> list[Any]:
    """Return values that increase; of what type `Adversary` says."""
    if values is None:
        return []
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputTypeError(f"{name} must be a list of numbers, found {values!r}")
    array = validate.finite_array(list(values), name)
    if array.ndim != 1 or array.size == 0 or (np.diff(array) <= 0.0).any():
        raise InvalidInputError(f"{name} must be increasing numbers, found {array.tolist()}")
    if kind is int and (array != array.round()).any():
        raise InvalidInputError(f"{name} must be whole numbers, found {array.tolist()}")
    return [kind(value) for value in array.tolist()]
