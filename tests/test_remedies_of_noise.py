"""What messages of noise advise is done from Python and on the command line, and helps."""

import itertools
import re
import shutil

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.models import SamplerSettings, Stacked
from edp_bayes.noise import FixedBandwidth, NoiseDistribution, search
from edp_bayes.noise.optimal import lattice_noise
from tests.command_line import printed, refused
from tests.noise.conftest import make_responses

QUICK = {"draws": 20, "chains": 2, "random_seed": 1, "progressbar": False}
BOOTSTRAP = edp.SmoothedBootstrap()
STACK = Stacked([BOOTSTRAP, edp.SmoothedBootstrap(variable=True)])


def test_a_stack_is_calibrated_for_from_its_responses():
    data = make_responses()
    audit = edp.audit(data, epsilon=[0.5], model=STACK, **QUICK)
    with pytest.raises(edp.InvalidInputError, match="give the responses themselves") as error:
        edp.noise.calibrate(audit, epsilon=0.2, responses=data)
    (call,) = re.findall(r"model=(Stacked\(.*\))$", str(error.value))
    model = eval(call, {"Stacked": Stacked, "SmoothedBootstrap": edp.SmoothedBootstrap})
    assert edp.noise.calibrate(data, epsilon=0.2, model=model, **QUICK).mean_absolute > 0.0


def test_a_fitted_model_is_calibrated_for_with_its_responses():
    data = make_responses()
    fitted = BOOTSTRAP.fit(data, SamplerSettings(**QUICK))
    with pytest.raises(edp.InvalidInputError, match="give responses="):
        edp.noise.calibrate(fitted, epsilon=0.2)
    assert edp.noise.calibrate(fitted, epsilon=0.2, responses=data).mean_absolute > 0.0


def test_responses_that_carry_noise_are_calibrated_for_without_it():
    data = make_responses()
    noisy = data.replaced(noise=edp.LaplaceNoise(0.1))
    with pytest.raises(edp.InvalidInputError, match="calibrate the query without its noise"):
        edp.noise.calibrate(noisy, epsilon=0.2, model=BOOTSTRAP, **QUICK)
    plain = noisy.replaced(noise=None)
    assert edp.noise.calibrate(plain, epsilon=0.2, model=BOOTSTRAP, **QUICK).mean_absolute > 0.0


@pytest.mark.parametrize("method", ["laplace", "optimal"])
def test_a_longer_limit_or_another_method_ends_in_time(method, monkeypatch):
    options = {"epsilon": 0.2, "model": FixedBandwidth(0.6), "progressbar": False}
    asked = {"method": method} | ({"spacing": 8.0} if method == "optimal" else {})

    def found(**given):
        looks = itertools.count()  # a second passes between any two looks at the clock
        monkeypatch.setattr(search, "now", looks.__next__)
        noise = edp.noise.calibrate(make_responses(), **given, **options)
        return noise, next(looks)

    _, enough = found(method="bottleneck", time_limit=1e6)
    with pytest.raises(search.TimeLimitError, match="give a longer time_limit") as error:
        found(**asked, time_limit=0.5)
    (other,) = re.findall(r"or method='(\w+)'", str(error.value))
    for better in ({**asked, "time_limit": 1e6}, {"method": other, "time_limit": enough + 1.0}):
        noise, _ = found(**better)
        assert not noise.record.get("stopped_early", False)
        assert noise.mean_absolute > 0.0


def test_who_asked_for_the_bottleneck_is_not_sent_there(monkeypatch):
    monkeypatch.setattr(search, "now", itertools.count().__next__)
    options = {"epsilon": 0.2, "model": FixedBandwidth(0.6), "method": "bottleneck"}
    with pytest.raises(search.TimeLimitError) as error:
        edp.noise.calibrate(make_responses(), time_limit=0.5, **options)
    assert "bottleneck" not in str(error.value)


def test_a_smaller_tau_is_reached_with_the_samples_it_needs():
    rng = np.random.default_rng(1)
    options = {"epsilon": [0.1], "draws": 100, "random_seed": 1, "progressbar": False}

    def outcomes(size, shift=0):
        return rng.integers(0, 4, size) + shift

    few = edp.audit_mechanism(outcomes(200), outcomes(200, 1), tau=0.9, **options)
    advice = "A smaller tau needs more samples."
    assert any(advice in said for said in few.warnings)
    more = edp.audit_mechanism(outcomes(2000), outcomes(2000, 1), tau=0.05, **options)
    assert not any(advice in said for said in more.warnings)
    assert (more.local_epsilon > 0.0).all()


@pytest.fixture(scope="module")
def meters(tmp_path_factory):
    """A table, and an audit of it by Python, which notes no table."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"week": np.repeat(np.arange(30), 4), "meter": np.tile(np.arange(4), 30)})
    frame = frame.assign(kwh=rng.gamma(2.0, 1.0, 120))
    folder = tmp_path_factory.mktemp("meters")
    frame.to_csv(folder / "meters.csv", index=False)
    data = edp.Databases.from_table(frame, database="week", individual="meter")
    responses = data.respond(edp.queries.Sum("kwh"))
    audit = edp.audit(responses, epsilon=[0.5], model=BOOTSTRAP, **QUICK)
    return folder / "meters.csv", audit.save(folder / "audit.nc")


@pytest.mark.full
def test_noise_on_the_command_line_is_found_from_the_table_that_is_given(meters, tmp_path, capsys):
    table, audit = meters
    words = ("noise", audit, "--epsilon", "2", "--prob", "0.9", "--out", tmp_path / "noise.json")
    said = refused(capsys, *words)
    assert "give --table with --database and --individual" in said
    keys = ("--database", "week", "--individual", "meter")
    assert "expected absolute noise" in printed(capsys, *words, "--table", table, *keys)
    assert NoiseDistribution.load(tmp_path / "noise.json").mean_absolute > 0.0
    assert "must name the key columns" in refused(capsys, *words, "--table", table)


@pytest.mark.full
def test_a_table_that_was_moved_is_found_where_it_is_now(meters, tmp_path, capsys, monkeypatch):
    table, _ = meters
    monkeypatch.chdir(tmp_path)
    shutil.copy(table, tmp_path / "old.csv")
    keys = ("--database", "week", "--individual", "meter", "--query", "sum:kwh")
    quick = ("--draws", "15", "--chains", "2", "--seed", "7", "--model", "bootstrap", "--no-past")
    printed(
        capsys, "audit", "old.csv", *keys, *quick, "--epsilon", "0.5", "--out", "out", "--quiet"
    )
    (tmp_path / "old.csv").rename(tmp_path / "new.csv")
    words = ("noise", "out/audit.nc", "--epsilon", "2", "--prob", "0.9")
    assert "give --table with where it is now" in refused(capsys, *words)
    printed(capsys, *words, "--table", "new.csv")
    assert NoiseDistribution.load("noise.json").mean_absolute > 0.0


@pytest.mark.full
def test_the_command_line_names_methods_that_it_has(meters, tmp_path, capsys):
    table, audit = meters
    words = ("noise", audit, "--epsilon", "2", "--out", tmp_path / "noise.json")
    words += ("--table", table, "--database", "week", "--individual", "meter")
    for asked in (("bottleneck", "0.01"), ("gaussian", "0")):
        given = (*words, "--method", asked[0], "--delta", asked[1])
        (method,) = re.findall(r"method='(\w+)' \(--method\)", refused(capsys, *given))
        printed(capsys, *given, "--method", method)
        assert NoiseDistribution.load(tmp_path / "noise.json").record["method"] == method


@pytest.mark.full
def test_noise_too_fine_for_a_lattice_is_found_by_each_way_out():
    model = FixedBandwidth(0.01, "gaussian")
    asked = {"epsilon": 690.0, "method": "optimal", "model": model, "progressbar": False}
    with pytest.raises(edp.InvalidInputError, match="too fine beside responses") as error:
        edp.noise.calibrate(make_responses(m=1), **asked)
    (method,) = re.findall(r"method='(\w+)'", str(error.value))
    (spacing,) = map(float, re.findall(r"spacing ([\d.e-]+)", str(error.value)))
    for better in ({"method": method}, {"epsilon": 0.5}, {"spacing": 100.0 * spacing}):
        noise = edp.noise.calibrate(make_responses(m=1), **(asked | better))
        assert noise.mean_absolute > 0.0


@pytest.mark.full
@pytest.mark.parametrize("most", [29, 37, 53])
def test_the_least_spacing_that_is_named_is_taken(most, monkeypatch):
    for limit in ("LARGEST_HALF", "MOST_WEIGHTS"):
        monkeypatch.setattr(lattice_noise, limit, most)
    asked = {"epsilon": 0.01, "method": "optimal", "model": FixedBandwidth(0.6)}
    with pytest.raises(edp.InvalidInputError, match="spacing must be at least") as error:
        edp.noise.calibrate(make_responses(), spacing=0.5, **asked)
    (least,) = re.findall(r"at least ([\d.e-]+)", str(error.value))
    with pytest.warns(edp.EdpBayesWarning, match="larger than the spread"):
        noise = edp.noise.calibrate(make_responses(), spacing=float(least), **asked)
    assert noise.record["method"] == "optimal"


def test_the_least_of_a_tradeoff_is_reached():
    responses = make_responses()
    options = {"model": FixedBandwidth(0.6), "progressbar": False}
    traded = edp.noise.tradeoff(responses, epsilon=[0.1, 1.0 / 7.0], **options)
    with pytest.raises(edp.InvalidInputError, match="the least is") as error:
        traded.best_privacy(1e-6)
    (least,) = re.findall(r"least is ([\d.e-]+)", str(error.value))
    assert traded.best_privacy(float(least)) is traded.noises[-1]


@pytest.mark.full
@pytest.mark.parametrize("method", ["laplace", "optimal"])
def test_a_limit_that_is_too_short_is_met_as_the_command_says(
    method, meters, tmp_path, capsys, monkeypatch
):
    table, audit = meters
    words = ("noise", audit, "--out", tmp_path / "noise.json", "--method", method, "--quiet")
    words += ("--table", table, "--database", "week", "--individual", "meter", "--time-limit")

    def ran(outcome, *options):
        # a second passes between any two looks at the clock
        monkeypatch.setattr(search, "now", itertools.count().__next__)
        return outcome(capsys, *words, *options)

    said = ran(refused, 4.5, "--epsilon", "0.5", "--draws", "60")
    advised = "a longer time_limit (--time-limit), fewer draws (--draws) or a larger epsilon"
    assert advised in said
    assert not (tmp_path / "noise.json").exists()
    for better in (
        (1e6, "--epsilon", "0.5", "--draws", "60"),
        (4.5, "--epsilon", "50", "--draws", "60"),
        (1e6, "--epsilon", "0.5", "--draws", "20"),
    ):
        ran(printed, *better)
        assert NoiseDistribution.load(tmp_path / "noise.json").record["method"] == method
