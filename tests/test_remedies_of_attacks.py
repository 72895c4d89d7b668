"""What messages of attacks, stores, lags and what is published advise is done, and helps."""

import re
import shutil
import sys

import numpy as np
import pytest

import edp_bayes as edp
from edp_bayes.auditing.store import _alone
from tests.noise.conftest import make_responses

QUICK = {"draws": 20, "chains": 2, "random_seed": 1, "progressbar": False, "epsilon": [0.1]}
BOOTSTRAP = edp.SmoothedBootstrap()


def releases(size=200):
    rng = np.random.default_rng(1)
    found = [shift + rng.normal(size=(size, 1)) for shift in (1.0, 0.0)]
    return [np.hstack([part, 2.0 * part]) for part in found]


def test_answers_that_follow_from_others_are_attacked_as_advised():
    present, absent = releases()
    with pytest.raises(edp.InvalidInputError, match="leave out answers that follow") as error:
        edp.attack(present, absent, random_seed=1)
    (method,) = re.findall(r"take method='(\w+)'", str(error.value))
    for parts, options in (
        ((present, absent), {"method": method}),
        ((present[:, :1], absent[:, :1]), {}),
    ):
        assert edp.attack(*parts, random_seed=1, **options).advantage > 0.2


def test_without_a_forest_the_neighbours_attack(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    with pytest.raises(edp.InvalidInputError, match="needs scikit-learn") as error:
        edp.attack(*releases(), method="forest", random_seed=1)
    (method,) = re.findall(r"or take '(\w+)'", str(error.value))
    assert edp.attack(*releases(), method=method, random_seed=1).advantage > 0.2


def test_futures_are_simulated_from_the_model_that_is_named():
    options = {"width": 0.9, "epsilon": 0.1, "prob": 0.5, "repetitions": 2, "draws": 20}
    options |= {"random_seed": 1, "progressbar": False, "most": 40}
    data = make_responses(n=40)
    with pytest.raises(edp.InvalidInputError, match="new databases are simulated") as error:
        edp.plan(data, model=BOOTSTRAP, **options)
    (call,) = re.findall(r"use (\w+\(\))", str(error.value))
    model = eval(call, {"DirichletProcessMixture": edp.DirichletProcessMixture})
    assert edp.plan(data, model=model, **options).sizes[0] == 40


@pytest.mark.full
def test_noise_after_many_rounded_answers_is_put_right_as_advised():
    data, noise = make_responses(), edp.LaplaceNoise(2.0)
    audit = edp.audit(data, model=BOOTSTRAP, **QUICK)
    options = {"noise_after": noise, "progressbar": False}
    with pytest.raises(edp.InvalidInputError, match=r"round more coarsely, or .*noise= of the"):
        audit.released(rounded_to=0.001, **options)
    coarse = audit.released(rounded_to=1.0, **options)
    alone = edp.audit(data.replaced(noise=noise), model=BOOTSTRAP, **QUICK)
    for found in (coarse, alone):
        assert float(found.delta.mean()) < float(audit.delta.mean())


@pytest.mark.full
def test_the_worst_offset_is_looked_for_as_advised():
    audit = edp.audit(make_responses(), model=BOOTSTRAP, **QUICK)
    quiet = {"progressbar": False}
    with pytest.raises(edp.InvalidInputError, match="leave it out, or give a number as offset"):
        audit.released(rounded_to=1.0, offset="worst", noise_after=edp.LaplaceNoise(1.0), **quiet)
    with pytest.raises(edp.InvalidInputError, match="number as offset, or leave out threshold"):
        audit.released(rounded_to=1.0, offset="worst", threshold=18.0, **quiet)
    for better in (
        {"offset": "worst"},
        {"offset": 0.5, "noise_after": edp.LaplaceNoise(1.0)},
        {"offset": 0.5, "threshold": 18.0},
    ):
        assert np.isfinite(audit.released(rounded_to=1.0, **better, **quiet).delta).all()


def test_who_is_seen_only_in_lags_is_assessed_with_fewer_or_left_out():
    data = make_responses(n=40)
    c = data.contribution.toarray()
    c[:, 0] = 0.0
    c[1, 0] = 0.3  # the second of two lags
    data = edp.Responses.from_arrays(data.response, contribution=c, individual=list("abcdef"))
    two, one = edp.Adversary(past=2), edp.Adversary(past=1)
    options = {**QUICK, "model": edp.FiniteMixture(components=1)}
    with pytest.raises(edp.InvalidInputError, match="leave them out, or give fewer lags"):
        edp.audit(data, adversary=two, individuals=["a"], **options)
    found = edp.audit(data, adversary=one, individuals=["a"], **options)
    assert "a" in found.individual_delta["individual"]
    assert edp.audit(data, adversary=two, individuals=["b"], **options).delta.size


def test_a_store_in_use_is_free_when_the_other_run_ends(tmp_path):
    options = {**QUICK, "model": BOOTSTRAP, "store": tmp_path}
    with _alone(tmp_path), pytest.raises(edp.InvalidInputError, match="by another run: wait until"):
        edp.audit(make_responses(), **options)
    assert edp.audit(make_responses(), **options).delta.size


def test_a_store_of_another_audit_is_replaced_as_advised(tmp_path):
    options = {**QUICK, "model": BOOTSTRAP}
    first, other = make_responses(), make_responses(seed=8)
    store = tmp_path / "store"
    edp.audit(first, store=store, keep_store=True, **options)
    with pytest.raises(edp.InvalidInputError, match="Give another store, or remove this one"):
        edp.audit(other, store=store, **options)
    assert edp.audit(other, store=tmp_path / "another", **options).delta.size
    shutil.rmtree(store)
    assert edp.audit(other, store=store, **options).delta.size
