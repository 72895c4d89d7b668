"""What rounding would leave of the risk, as a verdict says it: by the draws of the fit."""

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose

import edp_bayes as edp
from edp_bayes.auditing import rounding
from edp_bayes.report.describing import describe
from edp_bayes.results.verdict_record import record

QUICK = {"draws": 40, "tune": 80, "chains": 2, "random_seed": 1, "progressbar": False}
EPSILON = [0.05, 0.3, 1.0]


def amounts(people=6, *, alike=False, **more):
    rng = np.random.default_rng(7)
    c = rng.gamma(2.0, 0.05, (30, people)) * (rng.random((30, people)) < 0.6)
    c[:, 2] = 0.5 + 0.1 * rng.standard_normal(30)
    if alike:
        c = np.abs(0.4 + 0.1 * rng.standard_normal((30, people)))
    y = 20.0 + rng.standard_normal(30) + c.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=c, **more)


def counts():
    there = (np.random.default_rng(2).random((40, 5)) < 0.4).astype(float)
    more = np.random.default_rng(3).poisson(60.0, 40)
    return edp.Responses.from_arrays(there.sum(axis=1) + more, contribution=there, step=1)


AUDITS = {
    "bootstrap": (amounts, {"model": edp.SmoothedBootstrap()}),
    "mixture": (amounts, {}),
    "noisy": (lambda: amounts(noise=edp.LaplaceNoise(0.2)), {"draws": 5}),
    "counts": (counts, {}),
    "past": (amounts, {"adversary": edp.Adversary(past=1)}),
}


@pytest.fixture(scope="module", params=AUDITS)
def audit(request):
    make, options = AUDITS[request.param]
    return edp.audit(make(), epsilon=EPSILON, **QUICK | options)


@pytest.fixture(scope="module")
def plain():
    return edp.audit(amounts(), epsilon=EPSILON, model=edp.SmoothedBootstrap(), **QUICK)


@pytest.fixture(scope="module")
def many():
    """An audit of more individuals and draws than are evaluated."""
    options = {**QUICK, "draws": 150, "model": edp.SmoothedBootstrap()}
    return edp.audit(amounts(14, alike=True), epsilon=EPSILON, **options)


def every_risk(audit, step):
    """Return the largest rounded risk of all by brute force, (chain * draw, epsilon)."""
    edges = step * (0.5 + np.arange(-400, 400))
    edges = edges[np.abs(edges - 25.0) < 40.0]  # beyond lies less than 1e-13
    growth = np.exp(EPSILON)[:, None]
    found = []
    for person in range(audit.settings["individuals"]):
        p, q = (
            np.diff(d.cdf(edges), prepend=0.0, append=1.0)[..., None, :]
            for d in audit.source.coupling.pair(person)
        )
        both = np.maximum(p - growth * q, 0.0).sum(-1), np.maximum(q - growth * p, 0.0).sum(-1)
        found.append(np.maximum(*both))
    return np.max(found, axis=0).reshape(-1, len(EPSILON))


@pytest.mark.full
def test_draws_are_those_of_the_rounded_answer(audit):
    """Of few individuals and draws all are evaluated, and `released` finds the same."""
    found = audit.rounding
    assert found.sizes["sample"] == audit.delta.sizes["chain"] * audit.delta.sizes["draw"]
    for step in found["rounded_to"].to_numpy().tolist():
        rounded = audit.released(rounded_to=step, progressbar=False)
        truth = rounded.delta.to_numpy().reshape(-1, len(EPSILON))
        for name in ("delta", "least"):
            assert_allclose(found[name].sel(rounded_to=step), truth, rtol=1e-9, atol=1e-11)


@pytest.mark.full
def test_others_are_bounded_by_their_full_risk(many):
    found = many.rounding
    people, rows = rounding._chosen(many.source)
    assert (people.size, rows.size) == (rounding.PEOPLE, rounding.DRAWS)
    assert people.size < many.settings["individuals"]
    assert rows.size < many.source.risks.delta.shape[0]
    full = many.delta.to_numpy().reshape(-1, len(EPSILON))[rows]
    wide = []
    for k, step in enumerate(found["rounded_to"].to_numpy().tolist()):
        truth = every_risk(many, step)[rows]
        above, below = (found[name].to_numpy()[k] for name in ("delta", "least"))
        assert (below <= truth + 1e-11).all()
        assert (truth <= above + 1e-11).all()
        assert (above <= full).all()
        wide.append((above - truth).max())
    assert max(wide) > 1e-3  # the full risk of others counts
    # the limits of the full answer are nearly those in all draws
    every = many.delta.to_numpy().reshape(-1, len(EPSILON))
    assert_allclose(np.quantile(full, 0.95, axis=0), np.quantile(every, 0.95, axis=0), rtol=0.1)


@pytest.mark.full
@pytest.mark.parametrize("kind", ["pointwise", "simultaneous"])
def test_the_sentence_names_the_least_step_that_meets_the_target(plain, kind):
    steps = plain.rounding["rounded_to"].to_numpy().tolist()
    asked = {"epsilon": 0.3, "kind": kind}
    verdicts = [
        plain.released(rounded_to=step, progressbar=False).verdict(**asked, delta=0.5)
        for step in steps
    ]
    limits = [one.limit for one in verdicts]
    assert min(limits) < plain.verdict(**asked, delta=0.5).limit
    for limit in limits:
        delta = limit * (1.0 + 1e-6)
        said = plain.verdict(**asked, delta=delta)
        if said.status == "met":
            continue
        least = next(k for k, one in enumerate(limits) if one <= delta)
        assert (
            f"Rounding to {steps[least]:g} would meet the target: the limit would" in said.helps[1]
        )
    y = amounts().response
    moved = np.sqrt(np.mean((steps[-1] * np.round(y / steps[-1]) - y) ** 2)) / y.std()
    assert float(plain.rounding["moves"][-1]) == pytest.approx(moved)
    none = plain.verdict(**asked, delta=0.99 * min(limits)).helps
    named = f"{', '.join(f'{step:g}' for step in steps[:-1])} or {steps[-1]:g}"
    assert none[1].startswith(f"Rounding to {named} would not meet the target: the limit")
    said = float(none[1].split("at least ")[1].rstrip("."))
    assert 0.9 * min(limits) <= said <= min(limits) * (1.0 + 1e-9)
    assert not none[2].startswith("Rounding")


def test_where_bounds_say_neither_the_sentence_gives_no_figure(many):
    lower = float(np.quantile(many.rounding["least"][:, :, 1], 0.95, axis=1).min())
    upper = float(np.quantile(many.rounding["delta"][:, :, 1], 0.95, axis=1).min())
    assert lower < 0.9 * upper
    said = " ".join(many.verdict(epsilon=0.3, delta=0.5 * (lower + upper)).helps)
    assert "Rounding to" not in said
    assert "Rounding (released), a coarser period" in said
    assert "no figure here, because each takes a fit of its own" in said


@pytest.mark.full
def test_every_place_says_the_same(plain, tmp_path):
    said = plain.verdict().helps
    assert said[1].startswith("Rounding to ")
    assert set(said) <= set(record(plain, plain.verdict())["comments"])
    assert said[1] in plain._repr_html_()
    assert describe(plain).first.tried == said
    for name in ("audit.nc", "audit.zarr"):
        again = edp.load(plain.save(tmp_path / name))
        assert again.source is None
        assert again.verdict().helps == said
        for delta in (0.4, 0.01, 1e-5):
            assert again.verdict(delta=delta).helps == plain.verdict(delta=delta).helps
    assert plain.with_release(title="Sales").verdict().helps == said
    assert plain.with_pseudonyms().verdict().helps == said
    # the fit alone says what is left at an epsilon left of the grid: nothing
    assert "Rounding to" not in " ".join(plain.verdict(epsilon=0.01, delta=1e-9).helps)


@pytest.mark.full
def test_what_was_not_found_is_not_said(plain, tmp_path):
    bare = edp.Audit(plain.tree.drop_nodes("rounding", errors="ignore"))
    assert bare.rounding is None
    assert "Rounding (released), a coarser period" in bare.verdict(delta=1e-5).helps[-1]
    rounded = plain.released(rounded_to=1.0, progressbar=False)
    loaded = edp.load(plain.save(tmp_path / "audit.nc"))
    assert "rounding" in loaded.tree.children
    assert rounded.rounding is None
    scaled = edp.audit(amounts(), epsilon=[0.3], transform="log", **QUICK)
    both = edp.Responses.join(amounts(query="a"), amounts(alike=True, query="b"))
    joint = edp.audit(both, epsilon=[0.3], model=edp.SmoothedBootstrap(), **QUICK | {"draws": 10})
    for one in (rounded, scaled, joint):
        assert one.rounding is None
        assert "ounding" not in " ".join(one.verdict(delta=0.0).helps)


@pytest.mark.full
def test_a_damaged_figure_is_refused(plain, tmp_path):
    tree = edp.load(plain.save(tmp_path / "audit.nc")).tree.copy()
    wrong = tree["rounding"].to_dataset()
    tree["rounding"] = wrong.assign(delta=2.0 * np.ones_like(wrong["delta"]) * wrong["delta"] + 1.0)
    edp.Audit(tree).save(tmp_path / "wrong.nc")
    with pytest.raises(edp.InvalidInputError, match="rounding/delta must be numbers from 0 to 1"):
        edp.load(tmp_path / "wrong.nc")


def test_it_is_found_once_and_where_it_is_asked_for(monkeypatch):
    audit = edp.audit(amounts(), epsilon=EPSILON, model=edp.SmoothedBootstrap(), **QUICK)
    calls = []
    found = rounding._rounding

    def counted(*arguments):
        calls.append(arguments)
        return found(*arguments)

    monkeypatch.setattr(rounding, "_rounding", counted)
    verdict = audit.verdict(delta=1e-5)
    assert (verdict.status, str(verdict).startswith("Not met")) == ("not met", True)
    assert json.dumps(verdict.limit)
    assert calls == []
    assert verdict.helps
    assert audit.with_release(title="Sales").verdict(delta=0.01).helps
    assert len(calls) == 1


def test_a_result_keeps_what_was_found_or_what_its_default_target_needs():
    rng = np.random.default_rng(5)
    c = 0.02 + 0.001 * rng.standard_normal((40, 2))
    responses = edp.Responses.from_arrays(rng.standard_normal(40), contribution=c)
    audit = edp.audit(responses, epsilon=[0.1], model=edp.SmoothedBootstrap(), **QUICK)
    assert audit.verdict().status == "met"
    assert audit.with_pseudonyms().rounding is None
    said = audit.verdict(delta=0.0).helps
    assert said[1].startswith("Rounding to ")
    assert audit.with_pseudonyms().verdict(delta=0.0).helps == said
