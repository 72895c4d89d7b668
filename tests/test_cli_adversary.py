"""`edp-bayes audit` against an adversary: its options, its files, and what is said of them."""

import datetime as dt
import json
import warnings
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import edp_bayes as edp
from edp_bayes.cli import main
from edp_bayes.cli.labelling import label_of, like, place_of, written
from edp_bayes.cli.noise_work import responses_of
from edp_bayes.cli.run import Keys
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.noise import NoiseDistribution
from edp_bayes.noise.posterior import posterior_of
from tests.command_line import printed, refused

N, PEOPLE = 60, 6
WEEKS = pd.date_range("2023-01-02", periods=N + 1, freq="7D")
SIZES = {"draws": 60, "chains": 2, "seed": 7}


def frame(n=N):
    """Weekly meters whose level hangs on to last week's, twelve records a week."""
    rng = np.random.default_rng(11)
    level = np.zeros(n)
    for week in range(1, n):
        level[week] = 0.8 * level[week - 1] + rng.normal()
    rows = 2 * PEOPLE
    return pd.DataFrame(
        {
            "week": np.repeat(WEEKS[:n], rows),
            "meter": np.tile([f"m{k}" for k in range(PEOPLE)], 2 * n),
            "kwh": 5.0 + np.repeat(level, rows) / 4.0 + rng.gamma(2.0, 0.3, rows * n),
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, the weather of its weeks and of the next one, and a list of staff."""
    place = tmp_path_factory.mktemp("project")
    frame().to_csv(place / "meters.csv", index=False)
    weather().to_csv(place / "weather.csv", index=False)
    (place / "staff.csv").write_text("meter\nm1\nm4\n")
    return place


def weather():
    rng = np.random.default_rng(2)
    sky = np.where(np.arange(N + 1) % 3, "sun", "rain")
    return pd.DataFrame({"monday": WEEKS, "warm": rng.normal(size=N + 1), "sky": sky})


def words(table, out, *flags, **changes):
    chosen = {
        "database": "week",
        "individual": "meter",
        "query": "sum:kwh",
        "epsilon": "0.05:0.5:4",
        "model": "bootstrap",
        "out": out,
        **SIZES,
        **changes,
    }
    pairs = [
        (f"--{name.replace('_', '-')}", str(value))
        for name, value in chosen.items()
        if value is not None
    ]
    return ["audit", str(table), "--verbose", *(word for pair in pairs for word in pair), *flags]


def audited(capsys, folder, out, *flags, **changes):
    """Return what is printed, as one line of words, and the saved audit."""
    said = printed(capsys, *words(folder / "meters.csv", out, *flags, **changes))
    return " ".join(said.split()), edp.load(out / "audit.nc")


def in_python(adversary, at=None, model=None):
    """Return the audit that the command line makes."""
    databases = edp.Databases.from_table(frame(), database="week", individual="meter")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return edp.audit(
            databases.respond(edp.queries.Sum("kwh")),
            epsilon=np.linspace(0.05, 0.5, 4),
            model=model or edp.SmoothedBootstrap(),
            adversary=adversary,
            at=at,
            draws=SIZES["draws"],
            chains=SIZES["chains"],
            random_seed=SIZES["seed"],
            progressbar=False,
        )


def same(one, other):
    assert one.settings["known"] == other.settings["known"]
    np.testing.assert_allclose(one.delta, other.delta, rtol=1e-12)


@pytest.mark.full
def test_the_past_is_known_by_default(capsys, folder, tmp_path):
    said, audit = audited(capsys, folder, tmp_path)
    seen = (
        "Against a person who has seen the last 2 releases and knows the trend and when each "
        "individual was last there"
    )
    assert f"{seen}." in said
    assert "--past 2 --trend are the default; --no-past takes databases as independent." in said
    same(audit, in_python(edp.Adversary(past=2, trend=True)))
    # the bootstrap takes the slopes of contributions for known
    assert "Not established." in said
    assert "--model dpm" in audit.withheld
    said, audit = audited(capsys, folder, tmp_path / "dpm", "--model", "dpm", model=None)
    assert f"{seen.replace('Against', 'against')}, at epsilon" in said
    assert audit.withheld is None


@pytest.mark.full
def test_without_the_past_nothing_is_established(capsys, folder, tmp_path):
    said, audit = audited(capsys, folder, tmp_path, "--no-past", report=tmp_path / "r.html")
    assert "databases are taken as independent, as --no-past asks" in said
    assert "Not established. The databases are not independent: lag-1 autocorrelation" in said
    assert "largest risk of any of" not in said
    assert "against" not in audit.settings
    np.testing.assert_allclose(audit.delta, in_python(None).delta, rtol=1e-12)
    page = (tmp_path / "r.html").read_text()
    assert "Not established. The databases are not independent" in page


@pytest.mark.full
@pytest.mark.parametrize("case", ["few", "disorder"])
def test_few_or_unordered_databases_are_taken_as_independent(capsys, folder, tmp_path, case):
    rows = frame()
    if case == "few":
        rows = frame(29)
    else:
        rows["week"] = rows["week"].dt.strftime("%d/%m/%Y")
    rows.to_csv(tmp_path / "meters.csv", index=False)
    said, audit = audited(capsys, tmp_path, tmp_path / "out")
    why = {"few": "they are fewer than 30", "disorder": "they are not in the order of time"}[case]
    assert f"databases are taken as independent, because {why}" in said
    seen = (
        "a person who has seen the last 2 releases and knows the trend and when each "
        "individual was last there"
    )
    assert f"--past 2 --trend is {seen}." in said
    assert "against" not in audit.settings


@pytest.mark.full
def test_what_is_asked_for_is_what_they_know(capsys, folder, tmp_path):
    said, audit = audited(
        capsys, folder, tmp_path, "--no-trend", "--changing-scale", past=1, season=13
    )
    seen = "a person who has seen the last release and knows a season of 13 databases, how the"
    assert (
        f"Against {seen} spread changes and when each individual was last there. --no-past" in said
    )
    same(audit, in_python(edp.Adversary(past=1, season=13, changing_scale=True)))


def test_the_calendar_s_own_season(capsys, folder, tmp_path):
    assert main(words(folder / "meters.csv", tmp_path, season="calendar")) == 2
    line = capsys.readouterr().err
    assert "found year of 52.18: what was seen less than twice is no season" in line


@pytest.mark.full
def test_covariates_and_insiders_of_files_and_the_database_in_question(capsys, folder, tmp_path):
    said, audit = audited(
        capsys,
        folder,
        tmp_path,
        "--no-past",
        covariates=folder / "weather.csv",
        insiders=folder / "staff.csv",
        at="2023-03-06",
    )
    assert "knows the covariates warm and sky and learns from 2 insiders" in said
    assert "What else they know is said by --past, --trend and others." in said
    assert "60 databases, 4 individuals beside 2 insiders" in said
    assert "Responses are less what insiders contributed." in said
    known = edp.Adversary(covariates=weather(), insiders=["m1", "m4"])
    same(audit, in_python(known, at="2023-03-06"))
    assert audit.settings["at"].startswith("2023-03-06")
    assert not any("was not given" in doubt for doubt in audit.warnings)


@pytest.mark.full
def test_a_share_of_insiders_is_drawn_by_the_seed(capsys, folder, tmp_path):
    _, audit = audited(capsys, folder, tmp_path, insiders=0.34)
    adversary = edp.Adversary(past=2, trend=True, insiders=0.34, random_seed=SIZES["seed"])
    same(audit, in_python(adversary))
    assert audit.settings["insiders"] == 2


@pytest.mark.full
def test_covariates_follow_the_periods_of_the_databases(capsys, folder, tmp_path):
    rows = weather()
    rows["monday"] += pd.Timedelta(days=2)
    rows.to_parquet(tmp_path / "weather.parquet")
    _, audit = audited(
        capsys, folder, tmp_path, database_every="week", covariates=tmp_path / "weather.parquet"
    )
    same(audit, in_python(edp.Adversary(past=2, trend=True, covariates=weather())))


@pytest.mark.full
def test_covariates_of_a_compound_key(capsys, tmp_path):
    rows, week = frame(), np.repeat(np.arange(N), 2 * PEOPLE)
    rows = rows.assign(year=2000 + week // 4, quarter=week % 4)
    rows.to_csv(tmp_path / "meters.csv", index=False)
    warm = weather()["warm"].to_numpy()[:N]
    keys = rows[["year", "quarter"]].drop_duplicates().assign(warm=warm)
    keys.sample(frac=1.0, random_state=1).to_csv(tmp_path / "w.csv", index=False)
    options = {"database": "year,quarter", "covariates": tmp_path / "w.csv", "at": "2003,2"}
    _, audit = audited(capsys, tmp_path, tmp_path / "out", **options)
    assert audit.settings["known"] == ["lag 1", "lag 2", "trend", "warm"]
    assert audit.settings["at"] == "2003, 2"
    found = audit.tree["known"]["design"].sel(term="warm")
    np.testing.assert_allclose(found, (warm[2:] - warm[2:].mean()) / warm[2:].std())


def test_insiders_have_no_risk_to_keep(capsys, folder, tmp_path):
    flags = words(folder / "meters.csv", tmp_path, insiders=folder / "staff.csv", name="m4")
    assert main(flags) == 2
    assert "individual 'm4' is an insider, whose risk is not audited" in capsys.readouterr().err


def written_to(path, text):
    path.write_text(text)
    return path


DATES = "\n".join(f"{day:%Y-%m-%d},{k}" for k, day in enumerate(WEEKS[:-1]))


@pytest.mark.parametrize(
    ("option", "text", "message"),
    [
        ("covariates", f"day,warm\n{DATES[:-14]}", "a row for every database, found none for 2024"),
        ("covariates", f"day,warm\n{DATES}\n2023-01-09,1", "distinct, found 2023-01-09 2 times"),
        ("covariates", f"day,warm\n{DATES[:-2]}", "'warm' of database 2024-02-19 is missing"),
        ("covariates", "day\n2023-01-02", "must have columns beside the key column of the databa"),
        ("covariates", "day,warm\nMonday,3", "'day' holds 'Monday', where keys are like 2023-01-0"),
        ("covariates", "day,warm\n,3\n2023-01-02,2", "'day' has 1 missing value(s)"),
        ("covariates", "day_warm\n2023-01-02", "of the database, found 'day_warm'"),
        ("insiders", "who\nm1\nm9\n", "'who' names 'm9', who is no individual (1 of 2 are none)"),
        ("insiders", "m1\nm2\n", "the first line must name the column, found 'm1', an individual"),
        ("insiders", "town,who\nx,m1\n", "the key column of the individual and no more, found 'to"),
        (
            "insiders",
            "who\n" + "".join(f"m{k}\n" for k in range(6)),
            "leave an individual to audit",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line(capsys, folder, tmp_path, option, text, message):
    path = written_to(tmp_path / "known.csv", text)
    assert main(words(folder / "meters.csv", tmp_path / "out", **{option: path})) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    if "an individual to audit" not in message:
        assert f"--{option}" in line
        assert str(path) in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "flags", "message"),
    [
        ({"past": "-1"}, (), "--past"),
        ({"past": "2"}, ("--no-past",), "--past and --no-past contradict"),
        ({"season": "yearly"}, (), "--season must be a number of databases or calendar"),
        ({"season": "1"}, (), "season must be at least 2 databases, found 1"),
        ({"season": "40"}, (), "season must be no longer than half the series"),
        ({"past": "50"}, (), "too few for what the adversary knows"),
        (
            {"insiders": "1.5"},
            (),
            "a share of insiders must be at least 0 and less than 1, found 1.5",
        ),
        ({"insiders": "none.csv"}, (), "cannot read none.csv: there is no such file"),
        ({"covariates": "none.doc"}, (), "cannot tell the format of none.doc"),
        ({"at": "2023-01-03"}, (), "--at: there is no database '2023-01-03'; there are 2023-01-02"),
        ({"at": "2023-01-02"}, (), "at must be a database with 2 before it"),
        (
            {"at": "2023-03-06"},
            ("--no-past",),
            "--at is the database in question of an adversary who",
        ),
    ],
    ids=str,
)
def test_what_cannot_be_known_is_one_line(capsys, folder, tmp_path, changes, flags, message):
    assert main(words(folder / "meters.csv", tmp_path / "out", *flags, **changes)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert message in line
    assert not (tmp_path / "out").exists()


def test_no_file_is_read_twice_or_written_over(capsys, folder, tmp_path):
    table, staff = folder / "meters.csv", folder / "staff.csv"
    again = folder / ".." / folder.name / "staff.csv"
    line = refused(capsys, *words(table, tmp_path, covariates=table))
    assert f"--covariates must be a file of its own, found {table}, which is the table" in line
    line = refused(capsys, *words(table, tmp_path, covariates=staff, insiders=again))
    assert "--insiders must be a file of its own" in line
    line = refused(capsys, *words(table, tmp_path, insiders=staff, report=again))
    assert f"would overwrite {staff}, which is read" in line
    flags = words(table, tmp_path, "--pseudonyms", insiders=staff, pseudonym_key=again)
    assert "--pseudonym-key must be a file of its own" in refused(capsys, *flags)
    assert staff.read_text() == "meter\nm1\nm4\n"


@pytest.mark.full
@pytest.mark.parametrize("model", ["bootstrap", "dpm"])
def test_noise_is_found_against_the_same_adversary(capsys, folder, tmp_path, model):
    options = {"insiders": folder / "staff.csv", "model": model, "draws": 15}
    flags = words(folder / "meters.csv", tmp_path / "a", **options)
    assert main([*flags, "--quiet"]) == 0
    saved = tmp_path / "a" / "audit.nc"
    rest = ("--table", folder / "meters.csv", "--method", "bottleneck")
    out = tmp_path / "noise.json"
    said = printed(capsys, "noise", saved, "--epsilon", "2", *rest, "--out", out)
    said = " ".join(said.split())
    against = (
        "a person who has seen the last 2 releases, knows the trend and when each individual was "
        "last there and learns from 2"
    )
    assert said.startswith(f"Against {against} insiders")
    assert "the database in question: the next database" in said
    assert "all 4 individuals" in said
    record = NoiseDistribution.load(out).record
    assert record["against"].startswith(against)
    assert f"of the posterior draws, against {against}" in record["message"]
    audit = edp.load(saved)
    responses = responses_of(
        audit, str(folder / "meters.csv"), Keys(("week",), ("meter",)), progressbar=False
    )
    # What noise is held against are the audit's own risks.
    posterior = posterior_of(audit, responses=responses)
    curves = posterior.coupling.curves(np.arange(4), audit.epsilon.to_numpy())
    np.testing.assert_allclose(
        curves.max(axis=1), audit.delta.to_numpy().reshape(-1, 4), rtol=1e-6, atol=1e-9
    )


@pytest.mark.full
def test_under_pseudonyms_nobody_is_told_who_the_insiders_are(capsys, folder, tmp_path):
    options = {"insiders": folder / "staff.csv", "model": "bootstrap", "draws": 15}
    flags = words(folder / "meters.csv", tmp_path / "a", "--pseudonyms", **options)
    assert main([*flags, "--quiet"]) == 0
    saved = tmp_path / "a" / "audit.nc"
    held = saved.read_bytes()
    assert not any(f"m{k}".encode() + end in held for k in range(PEOPLE) for end in (b"\0", b'"'))
    rest = ("--epsilon", "2", "--table", folder / "meters.csv", "--out", tmp_path / "noise.json")
    said = refused(capsys, "noise", saved, *rest)
    assert "does not say who the insiders are: give the audit with its names" in said


@pytest.mark.full
def test_noise_of_responses_says_against_whom():
    databases = edp.Databases.from_table(frame(), database="week", individual="meter")
    data = databases.respond(edp.queries.Sum("kwh"))
    adversary = edp.Adversary(past=1)
    options = {"model": edp.SmoothedBootstrap(), "draws": 10, "chains": 2, "random_seed": 1}
    options |= {"adversary": adversary, "progressbar": False}
    noise = edp.noise.calibrate(data, epsilon=1.0, method="bottleneck", **options)
    assert noise.record["against"] == adversary.words
    assert json.loads(noise.to_json())["record"]["at"] == "the next database"
    verified = edp.noise.verify(data, noise, epsilon=[1.0], **options)
    assert verified.against == adversary.words
    assert verified.probability(epsilon=1.0) >= 0.95
    curve = edp.noise.tradeoff(data, epsilon=[0.5, 1.0], method="bottleneck", **options)
    assert curve.against == adversary.words
    assert f"against {adversary.words}" in repr(curve)
    plain = edp.noise.calibrate(
        data, epsilon=1.0, method="bottleneck", **{**options, "adversary": None}
    )
    assert "against" not in plain.record
    assert "against" not in plain.record["message"]


@pytest.mark.full
def test_intervals_are_about_the_next_answer():
    """Answers that rise by one a week: the next is about N, whatever the mean was."""
    rng = np.random.default_rng(3)
    part = rng.gamma(2.0, 0.05, (N, 3))
    response = np.arange(N) + rng.normal(0.0, 0.5, N) + part.sum(axis=1)
    data = edp.Responses.from_arrays(response, contribution=part, database=WEEKS[:N].to_numpy())
    audit = edp.audit(
        data,
        epsilon=[0.5],
        model=edp.SmoothedBootstrap(),
        adversary=edp.Adversary(trend=True),
        draws=100,
        random_seed=1,
        progressbar=False,
    )
    # half a unit of noise about N is within 5% of it, about N / 2 it would not be that often
    assert float(audit.interval_level(0.05).median()) > 0.98
    assert float((audit.mixture.mean()).mean()) == pytest.approx(N, abs=1.0)
    table = audit.summary(ci_prob=0.95)
    assert table.loc["interval_level[0.05]", "median"] > 0.98


ZONE = ZoneInfo("Europe/Berlin")
LABELS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(-1e9, 1e9).filter(lambda x: not x.is_integer()),
    st.dates(),
    st.datetimes(min_value=dt.datetime(1970, 1, 1), max_value=dt.datetime(2100, 1, 1)),
)


@given(LABELS)
def test_what_is_written_reads_as_it_was(label):
    assert like(written(label), label) == label


def test_keys_take_the_type_of_others():
    assert like("2024-01-08", dt.datetime(2024, 1, 1)) == dt.datetime(2024, 1, 8)
    zoned = like(dt.date(2024, 7, 1), dt.datetime(2024, 1, 1, tzinfo=ZONE))
    assert zoned == dt.datetime(2024, 7, 1, tzinfo=ZONE)
    assert like(7, "007") == "7"
    assert like(("1", 2), (1, "x")) == (1, "2")
    for value, example in [("x", 1), ("x", dt.date(2024, 1, 1)), (3, dt.date(2024, 1, 1))]:
        with pytest.raises(ValueError, match=r"date|literal|isoformat|convert"):
            like(value, example)
    with pytest.raises(ValueError, match="2 parts"):
        like(("1",), (1, 2))


def test_labels_are_found_by_how_they_read():
    days = np.array(["2024-01-01", "2024-01-08"], "M8[us]")
    for text in ("2024-01-08", " 2024-01-08 00:00", "2024-01-08T00:00:00"):
        assert label_of(text, days, "--at", "database") == dt.datetime(2024, 1, 8)
    assert label_of("3", np.array([1.0, 3.0]), "--at", "database") == 3.0
    text = np.array(["7", "007"], dtype=object)
    assert [label_of(one, text, "--at", "database") for one in text] == ["7", "007"]
    assert place_of(days)[dt.datetime(2024, 1, 1)] == 0
    with pytest.raises(InvalidInputError, match="--at: there is no database '9'; there are '7'"):
        label_of("9", text, "--at", "database")
