"""Many neighbouring pairs of one mechanism: a budget in two stages, one joint posterior."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from edp_bayes.black_box.analysis import Findings, analyse
from edp_bayes.black_box.assembly import chain_coords, fingerprint, record_of, tree_of
from edp_bayes.black_box.outcomes import Outcomes, read_outcomes
from edp_bayes.black_box.posterior.models import LogRatioModel
from edp_bayes.black_box.posterior.pooling import pool, pool_shares
from edp_bayes.black_box.posterior.privacy import CellCurves, delta_curves
from edp_bayes.exceptions import EdpBayesError, InvalidInputError
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.results.epsilon_at import WholeCurves
from edp_bayes.results.mechanism import MechanismAudit
from edp_bayes.utils.arrays import Array
from edp_bayes.utils.progress import track

__all__ = ["Sampler", "audit_pairs"]

Sampler = Callable[[Any, int, np.random.Generator], Any]
Pair = tuple[Any, Any]

LEAST_SIZE = 100
FIRST_DRAWS, FIRST_TUNE = 200, 150
# Every pair gets this share of an even split of the second stage, however unpromising.
EVEN_SHARE = 0.1
SHOWN = 60


@dataclass(frozen=True, eq=False)
class _Plan:
    """What is the same for all pairs."""

    mechanism: Sampler
    model: LogRatioModel
    settings: SamplerSettings
    epsilon: Array
    tau: float
    kind: str
    statistic: Callable[[Array], Array] | None


def audit_pairs(
    mechanism: Sampler,
    pairs: Sequence[Pair],
    *,
    names: Sequence[str] | None,
    model: LogRatioModel,
    settings: SamplerSettings,
    epsilon: Array,
    size: int,
    first_share: float,
    kind: str,
    statistic: Callable[[Array], Array] | None,
    record: Mapping[str, Any],
) -> MechanismAudit:
    """Return the audit of all pairs; see `edp_bayes.black_box.auditing.audit_mechanisms`."""
    plan = _Plan(mechanism, model, settings, epsilon, float(record["tau"]), kind, statistic)
    first_size = max(LEAST_SIZE, round(first_share * size))
    samples = [_sample(plan, pairs, k, first_size, "first") for k in range(len(pairs))]
    _require_one_kind(samples, pairs)
    sizes = _second_sizes(plan, samples, max(0, size - first_size))
    for k, extra in enumerate(sizes):
        if extra:
            more = _sample(plan, pairs, k, extra, "second")
            _require_one_kind([samples[0], more], [pairs[0], pairs[k]])
            samples[k] = _join(samples[k], more)
    findings = [_analyse(plan, k, s, settings) for k, s in _tracked(samples, settings)]
    pair_epsilon, pair_delta = _joint(findings, settings)
    databases, owner = _databases(pairs)
    if names is None:
        names = _distinct([f"{_text(x)} / {_text(y)}" for x, y in pairs])
    shape = (settings.chains, settings.draws)
    lead = ("chain", "draw")
    by_database = np.stack(
        [pair_epsilon[:, owner == d].max(axis=1) for d in range(len(databases))], axis=1
    )
    posterior = xr.Dataset(
        {
            "delta": ((*lead, "epsilon"), pair_delta.max(axis=1).reshape(*shape, -1)),
            "local_epsilon": (lead, pair_epsilon.max(axis=1).reshape(shape)),
            "pair_delta": ((*lead, "pair", "epsilon"), _split(pair_delta, shape)),
            "pair_local_epsilon": ((*lead, "pair"), _split(pair_epsilon, shape)),
            "database_local_epsilon": ((*lead, "database"), _split(by_database, shape)),
        },
        coords={
            "epsilon": epsilon,
            "pair": np.array(names),
            "of_database": ("pair", np.array(databases)[owner]),
            "database": np.array(databases),
            **chain_coords(settings),
        },
    )
    reduced = sorted({f.statistic for f in findings if f.statistic})
    full = {
        **record,
        "kind": samples[0].kind,
        "pairs": len(pairs),
        "samples": [list(s.sizes) for s in samples],
        "statistic": "; ".join(reduced),
        "lower_bound": True,
        "fingerprint": fingerprint(*samples),
        **record_of(model, settings),
    }
    warnings = list(dict.fromkeys(w for f in findings for w in f.warnings))
    # Joint draws are independent whatever the chains did: these are what has to have converged.
    sampled = xr.Dataset(
        {
            "delta": ((*lead, "pair", "epsilon"), _split(_deltas(findings), shape)),
            "local_epsilon": ((*lead, "pair"), _split(_local_epsilons(findings), shape)),
        }
    )
    tree = tree_of(posterior, full, warnings, sampled=sampled)
    if len(pairs) == 1:
        return MechanismAudit(tree, findings[0].source)
    sources = [f.source for f in findings]
    return MechanismAudit(tree, _JointCurves(sources, settings, pair_delta.max(axis=1)))


def _sample(plan: _Plan, pairs: Sequence[Pair], k: int, size: int, stage: str) -> Outcomes:
    """Call the mechanism for both databases of a pair; any failure names the pair."""
    sides = []
    for side, database in enumerate(pairs[k]):
        rng = plan.settings.generator(stage, k, side)
        where = f"pair {k} ({_text(pairs[k][0])}, {_text(pairs[k][1])})"
        try:
            found = plan.mechanism(database, size, rng)
        except Exception as error:
            raise InvalidInputError(
                f"the mechanism failed on database {side} of {where}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not hasattr(found, "__len__") or isinstance(found, str | bytes) or len(found) != size:
            shape = getattr(found, "shape", None)
            what = f"shape {shape}" if shape is not None else f"{found!r:.60}"
            raise InvalidInputError(
                f"the mechanism must return {size} outcomes, found {what} for database {side} "
                f"of {where}"
            )
        sides.append(found)
    try:
        return read_outcomes(sides[0], sides[1], plan.kind)
    except EdpBayesError as error:
        raise type(error)(f"outcomes of {where} cannot be used: {error}") from None


def _require_one_kind(samples: Sequence[Outcomes], pairs: Sequence[Pair]) -> None:
    """Refuse a mechanism whose outcomes are discrete for some pairs and numbers for others."""
    for outcomes, pair in zip(samples, pairs, strict=True):
        if (outcomes.kind == "discrete") != (samples[0].kind == "discrete"):
            raise InvalidInputError(
                "a mechanism must have outcomes of one kind, found "
                f"{samples[0].kind} ones for pair ({_text(pairs[0][0])}, {_text(pairs[0][1])}) and "
                f"{outcomes.kind} ones for pair ({_text(pair[0])}, {_text(pair[1])})"
            )


def _join(first: Outcomes, second: Outcomes) -> Outcomes:
    return read_outcomes(
        np.concatenate([first.first, second.first]),
        np.concatenate([first.second, second.second]),
        "mixed" if "mixed" in (first.kind, second.kind) else first.kind,
    )


def _second_sizes(plan: _Plan, samples: list[Outcomes], size: int) -> list[int]:
    """Split the second stage by the probability of each pair to be the worst."""
    if len(samples) == 1 or size == 0:
        return [size] * len(samples)
    quick = replace(plan.settings, draws=FIRST_DRAWS, tune=FIRST_TUNE, chains=1)
    draws = np.column_stack(
        [_analyse(plan, k, s, quick).local_epsilon for k, s in _tracked(samples, plan.settings)]
    )
    worst = np.bincount(draws.argmax(axis=1), minlength=len(samples)) / len(draws)
    share = EVEN_SHARE / len(samples) + (1.0 - EVEN_SHARE) * worst
    return [int(n) for n in np.floor(share * size * len(samples))]


def _analyse(plan: _Plan, k: int, outcomes: Outcomes, settings: SamplerSettings) -> Findings:
    seed = int(settings.generator("pair", k).integers(2**31))
    own = replace(settings, random_seed=seed)
    return analyse(outcomes, plan.model, own, plan.epsilon, plan.tau, plan.statistic)


def _tracked(samples: list[Outcomes], settings: SamplerSettings) -> Any:
    return track(enumerate(samples), "Pairs", total=len(samples), show=settings.progressbar)


def _joint(findings: list[Findings], settings: SamplerSettings) -> tuple[Array, Array]:
    """Return joint draws (draw, pair) of the local epsilon, (draw, pair, epsilon) of delta.

    All of them are pooled with the same stream, so that in a draw they are high or low together.
    """
    separate, deltas = _local_epsilons(findings), _deltas(findings)
    if len(findings) == 1:
        return separate, deltas
    curves = _pooled(deltas, settings)
    joint = _joint_local_epsilon(separate, settings.generator("pool"), settings.generator("stand"))
    return joint, np.minimum.accumulate(curves, axis=2)


def _pooled(deltas: Array, settings: SamplerSettings) -> Array:
    """Return joint draws of delta of all pairs at every epsilon, (draw, pair, epsilon)."""
    levels = range(deltas.shape[2])
    return np.stack(
        [pool_shares(deltas[:, :, e], settings.generator("pool")) for e in levels], axis=2
    )


@dataclass(frozen=True, eq=False)
class _JointCurves(WholeCurves):
    """Evaluates joint draws of delta of the worst pair at any epsilon.

    They are pooled epsilon by epsilon, so they need not be convex. Like those of the grid they
    are made never to rise, and stay between its values.

    Parameters
    ----------
    sources : list of CellCurves
        One of each pair.
    settings : SamplerSettings
        Whose streams the draws are pooled with.
    curves : ndarray
        Shape (draw, epsilon): those of the grid.
    """

    sources: list[CellCurves]
    settings: SamplerSettings
    curves: Array
    shared = True

    def between(
        self, epsilon: Array, left: int, target: float, rows: NDArray[np.int64]
    ) -> tuple[Array, Array]:
        """Return delta, twice; see `edp_bayes.results.epsilon_at`."""
        deltas = [delta_curves(s.distributions, epsilon[0]) for s in self.sources]
        found = _pooled(np.stack(deltas, axis=1), self.settings).max(axis=1)[rows]
        found = np.maximum(found, self.curves[rows, left + 1][:, None])
        if left >= 0:
            found = np.minimum(found, self.curves[rows, left][:, None])
        found = np.minimum.accumulate(found, axis=1)
        return found, found

    def end(self, instead: str) -> Array:
        """Say that there is none."""
        raise InvalidInputError(
            "delta must be above 0 here, found 0: of several pairs the joint draws do not say "
            f"where delta is zero; {instead}, or see local_epsilon"
        )


def _local_epsilons(findings: list[Findings]) -> Array:
    return np.column_stack([f.local_epsilon for f in findings])


def _deltas(findings: list[Findings]) -> Array:
    return np.stack([f.delta for f in findings], axis=1)


def _joint_local_epsilon(
    separate: Array, rng: np.random.Generator, other: np.random.Generator
) -> Array:
    """Return joint draws where they are finite; infinite ones stay what they are."""
    finite = np.isfinite(separate)
    joint = separate.copy()
    known = finite.any(axis=0)
    if known.sum() > 1:
        filled = separate.copy()
        for k in np.flatnonzero(known):
            again = other.choice(separate[finite[:, k], k], len(separate))
            filled[:, k] = np.where(finite[:, k], separate[:, k], again)
        joint[:, known] = pool(filled[:, known], rng, len(separate))
    return np.where(finite, joint, np.inf)


def _databases(pairs: Sequence[Pair]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the names of the distinct first databases, and whose neighbour each pair holds."""
    places: dict[Any, int] = {}
    owner = [places.setdefault(_identity(x), len(places)) for x, _ in pairs]
    first = [pairs[owner.index(d)][0] for d in range(len(places))]
    return _distinct([_text(x) for x in first]), np.array(owner, dtype=np.int64)


def _identity(database: Any) -> Any:
    """Return what tells databases apart: numbers and sequences by value, all else by object."""
    if isinstance(database, np.ndarray):
        return database.shape, repr(database.tolist())
    if isinstance(database, list | tuple):
        return type(database), *map(_identity, database)
    try:
        hash(database)
    except TypeError:
        return id(database)
    return database


def _distinct(names: list[str]) -> list[str]:
    """Return names with a number where one comes again, as shortened ones may."""
    seen: dict[str, int] = {}
    out = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


def _split(values: Array, shape: tuple[int, int]) -> Array:
    return values.reshape(*shape, *values.shape[1:])


def _text(database: Any) -> str:
    plain = database.tolist() if isinstance(database, np.ndarray) else database
    text = repr(plain)
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 1]}…"
