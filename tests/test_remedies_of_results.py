"""What messages of results, compositions and attacks advise is tried on what caused them."""

import functools
import warnings
from typing import Any

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes import diagnostics
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.report import pseudonym_table, write_report

FAST: dict[str, Any] = {"draws": 30, "tune": 60, "random_seed": 1, "progressbar": False}
N = 36


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        yield


@functools.cache
def revenue(query: str = "revenue", seed: int = 1, step: float | None = None) -> edp.Responses:
    rng = np.random.default_rng(seed)
    c = rng.gamma(2.0, 0.2, (N, 4))
    y = rng.normal(10.0, 1.0, N) + c.sum(axis=1)
    if step is not None:
        y, c = np.round(y), np.round(c)
    people = ["ann", "bob", "cy", "dee"]
    return edp.Responses.from_arrays(
        y, contribution=c, individual=people, query=query, additive=True, step=step
    )


@functools.cache
def audited(
    adversary: edp.Adversary | None = None, model: Any = None, step: float | None = None
) -> Any:
    return edp.audit(
        revenue(step=step), epsilon=[0.1, 0.5], adversary=adversary, model=model, **FAST
    )


@functools.cache
def joined(adversary: edp.Adversary | None = None) -> Any:
    both = edp.Responses.join(revenue(), revenue("orders", seed=2))
    return edp.audit(both, epsilon=[0.1, 0.5], adversary=adversary, **FAST)


def advised(match: str, *, error: type[Exception] = InvalidInputError) -> Any:
    return pytest.raises(error, match=match)


@pytest.mark.full
def test_audits_of_the_same_databases_are_joined_or_said_to_be_fresh():
    other = edp.audit(revenue("orders", seed=2), epsilon=[0.1, 0.5], **FAST)
    with advised(r"Responses\.join.*databases= of a single audit.*fresh=True"):
        edp.compose([audited(), other])
    assert joined().upper("delta").size == 2
    assert edp.compose(audited(), databases=3, progressbar=False).databases == 3
    assert edp.compose([audited(), other], fresh=True, progressbar=False).databases == 2


def test_queries_are_joined_one_by_one():
    pair = [revenue(), revenue("orders", seed=2)]
    with advised(r"one by one, Responses\.join\(revenue, orders\)", error=InputTypeError):
        edp.Responses.join(pair)
    assert edp.Responses.join(*pair).n_queries == 2


def test_the_past_is_shown_of_the_audit_that_is_named():
    with advised(r"edp\.audit\(\.\.\., adversary=edp\.Adversary\(past=1\)\)"):
        audited().plot_past(backend="none")
    audited(edp.Adversary(past=1)).plot_past(backend="none")


@pytest.mark.full
def test_leakage_needs_one_of_what_is_named():
    options = {"epsilon": 0.1, "model": edp.SmoothedBootstrap(), **FAST}
    del options["tune"]
    with advised("give past or insiders"):
        edp.leakage(revenue(), past=None, insiders=None, **options)
    assert len(edp.leakage(revenue(), past=range(2), **options).past) == 2
    assert len(edp.leakage(revenue(), insiders=[0.0, 0.5], **options).insiders) == 2


def test_bins_under_insiders_are_the_worst_ones():
    told = audited(edp.Adversary(insiders=["bob"]))
    with advised("offset='worst'"):
        told.released(rounded_to=1.0, progressbar=False)
    found = told.released(rounded_to=1.0, offset="worst", progressbar=False)
    assert (found.delta <= told.delta + 1e-12).all()


def test_what_is_published_starts_from_the_full_answer():
    rounded = audited().released(rounded_to=2.0, progressbar=False)
    with advised("start from the audit of the full answer"):
        rounded.released(rounded_to=4.0, progressbar=False)
    assert audited().released(rounded_to=4.0, progressbar=False).upper("delta").size == 2


@pytest.mark.full
def test_keys_and_pseudonyms(tmp_path):
    audit, key = audited(), "a secret of more than 16 bytes"
    with advised("leave it out, or names='pseudonyms'"):
        audit.save(tmp_path / "a.nc", key=key)
    audit.save(tmp_path / "a.nc")
    path = audit.save(tmp_path / "b.nc", names="pseudonyms", key=key)
    replaced = edp.load(path)
    with advised("leave out key="):
        write_report(replaced, tmp_path / "r.html", key=key)
    write_report(replaced, tmp_path / "r.html")
    with advised("leave it out, or names=True|a key is for pseudonyms"):
        write_report(audit, tmp_path / "r.html", names=True, key=key)
    write_report(audit, tmp_path / "r.html", key=key)
    with advised("take the one it was made from"):
        pseudonym_table(replaced)
    assert len(pseudonym_table(audit, key=key)) == 4


def test_a_stack_has_no_prior_and_its_models_have():
    models = (edp.FiniteMixture(components=1), edp.FiniteMixture(components=2))
    stack = audited(model=edp.Stacked(models))
    with advised("audit each of its models alone"):
        diagnostics.prior_sensitivity(stack)
    assert len(diagnostics.prior_sensitivity(audited(model=models[0])))


def test_a_store_is_a_folder_of_its_own(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    options = {"epsilon": [0.1], "model": edp.SmoothedBootstrap(), **FAST}
    with advised("give a new or empty one"):
        edp.audit(revenue(), store=tmp_path, **options)
    assert edp.audit(revenue(), store=tmp_path / "new", **options).epsilon.size == 1


def test_an_individual_is_no_insider_of_their_own_audit():
    options = {"epsilon": [0.1], "adversary": edp.Adversary(insiders=["bob"]), **FAST}
    with advised("leave out one of the two"):
        edp.audit(revenue(), individuals=["bob"], **options)
    assert edp.audit(revenue(), individuals=["ann"], **options).epsilon.size == 1
    options["adversary"] = None
    assert edp.audit(revenue(), individuals=["bob"], **options).epsilon.size == 1


@pytest.mark.full
def test_intervals_are_known_on_scales_that_an_audit_keeps():
    pair = (np.cbrt, lambda x: x**3)
    cubic = edp.audit(revenue(), epsilon=[0.1], transform=pair, **FAST)
    with advised("log, logit, sqrt or none"):
        cubic.interval_level(0.1)
    for scale in ("log", "sqrt", None):
        edp.audit(revenue(), epsilon=[0.1], transform=scale, **FAST).interval_level(0.1)


@pytest.mark.full
@pytest.mark.parametrize("at", [None, N - 1])
@pytest.mark.parametrize("asked", [{"rounded_to": 2.0}, {"rounded_to": 3.0, "offset": "worst"}])
def test_insiders_on_no_grid_leave_the_worst_bins_of_continuous_answers(at, asked):
    rounded = revenue(step=1.0)
    c = rounded.contribution.toarray()
    c[:, 1] += np.random.default_rng(2).uniform(0.1, 0.4, N)
    rounded = edp.Responses.from_arrays(
        rounded.response, contribution=c, individual=rounded.individual, additive=True, step=1.0
    )
    options = {"epsilon": [0.1], "adversary": edp.Adversary(insiders=["bob"]), **FAST}
    place = {} if at is None else {"at": rounded.database[at]}
    audit = edp.audit(rounded, **place, **options)
    with advised(r"responses\.replaced\(step=None\).* offset='worst'"):
        audit.released(**asked, progressbar=False)
    plain = edp.audit(rounded.replaced(step=None), **place, **options)
    found = plain.released(**(asked | {"offset": "worst"}), progressbar=False)
    assert (found.delta <= plain.delta + 1e-12).all()


@pytest.mark.full
def test_the_worst_offset_is_looked_for_in_continuous_answers():
    with advised(r"give the offset, or .*responses\.replaced\(step=None\)"):
        audited(step=1.0).released(rounded_to=3.0, offset="worst", progressbar=False)
    assert audited(step=1.0).released(rounded_to=3.0, progressbar=False).delta.size
    plain = edp.audit(revenue(step=1.0).replaced(step=None), epsilon=[0.1, 0.5], **FAST)
    assert plain.released(rounded_to=3.0, offset="worst", progressbar=False).delta.size


def exposed(seed: int) -> edp.Responses:
    rng = np.random.default_rng(seed)
    c = np.zeros((40, 60))
    c[rng.integers(40, size=59), np.arange(1, 60)] = 1.0
    c[:5, 0] = 100.0
    return edp.Responses.from_arrays(rng.normal(0.0, 10.0, 40) + c.sum(axis=1), contribution=c)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(3))
def test_the_bootstrap_pools_nobody_who_is_exposed(seed):
    grid = np.array([0.1])
    pooled = diagnostics.check_individuals(exposed(seed), epsilon=grid, upper=np.array([0.01]))
    assert "See what SmoothedBootstrap()" in pooled.warnings[0]
    alone = edp.audit(exposed(seed), epsilon=grid, model=edp.SmoothedBootstrap(), **FAST)
    assert alone.checks.loc["individuals", "passed"]
    assert alone.upper("delta").item() >= 0.125
