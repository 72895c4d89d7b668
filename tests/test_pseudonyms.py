"""Results saved under pseudonyms: no label is left, the numbers and the report's names are."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import edp_bayes as edp
from edp_bayes.cli import main
from edp_bayes.report import pseudonym_table
from edp_bayes.report.pseudonyms import WITHHELD
from edp_bayes.utils.sentences import Name, Sentence, restored, stored

LABELS = [f"Zaphod Beeblebrox {k}" for k in range(5)] + ["Trillian Ärztin"]
KEY = "a key of sixteen bytes"
OPTIONS = {"epsilon": [0.1, 0.5], "draws": 60, "chains": 2, "random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def responses():
    rng = np.random.default_rng(1)
    c = rng.gamma(2.0, 0.1, (30, len(LABELS)))
    c[::9, 5] = 40.0  # exposed: checks name them
    y = rng.normal(10.0, 1.0, 30) + c.sum(axis=1)
    return edp.Responses.from_arrays(y, contribution=c, individual=LABELS, additive=True)


@pytest.fixture(scope="module")
def audit(responses):
    found = edp.audit(responses, model=edp.SmoothedBootstrap(), individuals=LABELS[:1], **OPTIONS)
    said = Sentence("Look at ", Name("'Trillian Ärztin'", "Trillian Ärztin"), Name("'X'", "X"), ".")
    plain = "Somebody called Zaphod Beeblebrox 3 is in it."
    warnings = [*json.loads(found.tree.attrs["warnings"]), stored(said), plain]
    found.tree.attrs["warnings"] = json.dumps(warnings)
    return found


def held(path):
    parts = [part for part in path.rglob("*") if part.is_file()] if path.is_dir() else [path]
    return b"".join(part.read_bytes() for part in parts)


def written(label):
    """Return the ways in which a file may hold a label."""
    ways = {label, json.dumps(label)[1:-1], json.dumps(json.dumps(label))[3:-3]}
    return [way.encode(code) for way in ways for code in ("utf-8", "utf-16-le", "utf-32-le")]


@pytest.mark.full
@pytest.mark.parametrize("name", ["audit.nc", "audit.zarr"])
def test_no_label_is_in_the_file(audit, tmp_path, name):
    known = held(audit.save(tmp_path / "open" / name))
    path = audit.save(tmp_path / name, names="pseudonyms", key=KEY)
    saved = held(path)
    if name.endswith("nc"):
        assert any(way in known for way in written(LABELS[0]))
    for label in LABELS:
        assert not any(way in saved for way in written(label))
    assert b"Beeblebrox" not in saved
    hidden = edp.load(path)
    named = dict(pseudonym_table(audit, key=KEY)["individual"])
    # The order of labels tells them: pseudonyms stand in their own.
    assert list(hidden.individuals["individual"].values) == sorted(named)
    for group in ("posterior", "densities", "individuals"):
        own, other = (result.tree[group].to_dataset() for result in (audit, hidden))
        own = own.assign_coords(
            individual=[key for x in own["individual"].values for key in named if named[key] == x]
        )
        xr.testing.assert_equal(own, other.sel(individual=own["individual"]))


def test_sentences_keep_their_words(audit):
    hidden = audit.with_pseudonyms(key=KEY)
    table = pseudonym_table(audit, key=KEY)
    pseudonym = {label: p for p, label in table["individual"].items()}
    assert f"Look at {pseudonym['Trillian Ärztin']}{WITHHELD}." in hidden.warnings
    assert not any("Beeblebrox" in sentence for sentence in hidden.warnings)
    changed = [
        (restored(one["sentence"]), restored(other["sentence"]))
        for one, other in zip(
            *(json.loads(result.tree.attrs["checks"]) for result in (audit, hidden)), strict=True
        )
    ]
    for before, after in changed:
        assert after == before.naming(lambda label: pseudonym[label])
    assert hidden.settings == audit.settings


@pytest.mark.full
@pytest.mark.parametrize("key", [None, KEY])
def test_pseudonyms_are_those_of_the_report(audit, tmp_path, key):
    hidden = edp.load(audit.save(tmp_path / "audit.nc", names="pseudonyms", key=key))
    pages = [
        audit.report(tmp_path / "a.html", key=key).read_text("utf-8"),
        hidden.report(tmp_path / "b.html").read_text("utf-8"),
    ]
    for pseudonym in pseudonym_table(audit, key=key).index[:2]:
        assert all(str(pseudonym) in page for page in pages)
    assert all("Names are replaced by pseudonyms" in page for page in pages)


def test_what_cannot_be_asked_of_pseudonyms(audit, tmp_path):
    hidden = audit.with_pseudonyms()
    for ask in (
        hidden.with_pseudonyms,
        lambda: pseudonym_table(hidden),
        lambda: hidden.report(tmp_path / "report.html", key=KEY),
        lambda: audit.save(tmp_path / "audit.nc", names="initials"),
        lambda: audit.save(tmp_path / "audit.nc", key=KEY),
        lambda: audit.save(tmp_path / "audit.nc", names="pseudonyms", key="short"),
    ):
        with pytest.raises(edp.InvalidInputError):
            ask()
    assert not list(tmp_path.iterdir())


@pytest.mark.full
def test_no_position_among_the_labels_is_left(responses, tmp_path):
    told, own = edp.Adversary(insiders=LABELS[2:4]), edp.Adversary(own=True)
    for options, said in (
        ({"adversary": told, "model": edp.SmoothedBootstrap()}, "the insiders are"),
        ({"adversary": own, "model": edp.SmoothedBootstrap()}, "the insiders are"),
        ({}, "makes up most of the variance"),
    ):
        audit = edp.audit(responses, **OPTIONS, **options)
        edp.noise.calibrate(audit, responses=responses, epsilon=5.0, method="bottleneck")
        hidden = edp.load(audit.save(tmp_path / "audit.nc", names="pseudonyms", key=KEY))
        assert "without" not in hidden.tree.children
        assert b"Beeblebrox" not in held(tmp_path / "audit.nc")
        with pytest.raises(edp.InvalidInputError, match=f"does not say who {said}"):
            edp.noise.calibrate(hidden, responses=responses, epsilon=5.0, method="bottleneck")


@pytest.mark.full
def test_a_verification_needs_a_key(responses, tmp_path):
    noise = edp.noise.NoiseDistribution(
        (edp.LaplaceNoise(1.0),),
        record={
            "message": Sentence("Because of ", Name(repr(LABELS[1]), LABELS[1]), "."),
            "audit_warnings": [f"Individual {LABELS[2]} is exposed."],
        },
    )
    found = edp.noise.verify(responses, noise, model=edp.SmoothedBootstrap(), **OPTIONS)
    with pytest.raises(edp.InvalidInputError, match="give key="):
        found.with_pseudonyms()
    path = found.save(tmp_path / "noise.nc", names="pseudonyms", key=KEY)
    assert b"Beeblebrox" not in held(path)
    again = edp.load(path)
    assert again.noise.record["message"].startswith("Because of P-")
    assert again.noise.components == noise.components


@pytest.mark.full
def test_the_command_line_writes_no_name(tmp_path, capsys):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "week": np.repeat(np.arange(30), 6),
            "person": np.tile(LABELS, 30),
            "kwh": rng.gamma(2.0, 1.0, 180),
        }
    )
    table = tmp_path / "people.csv"
    frame.to_csv(table, index=False)
    out = tmp_path / "out"
    keys = ["--database", "week", "--individual", "person"]
    sizes = ["--draws", "20", "--chains", "2", "--seed", "1", "--model", "bootstrap", "--quiet"]
    words = [
        "audit",
        str(table),
        "--verbose",
        *keys,
        "--query",
        "sum:kwh",
        *sizes,
        "--epsilon",
        "0.5",
    ]
    report = str(out / "report.html")
    asked = ["--out", str(out), "--pseudonyms", "--report", report]
    assert main([*words, *asked]) == 0
    assert {path.stat().st_mode & 0o777 for path in out.iterdir()} <= {0o600, 0o644, 0o664}
    private = {path.name for path in out.iterdir() if path.stat().st_mode & 0o777 == 0o600}
    assert private == {path.name for path in out.iterdir()} - {"report.html"}
    for path in out.iterdir():
        assert not any(way in path.read_bytes() for label in LABELS for way in written(label))
    assert "P-" in (out / "summary.csv").read_text()
    noise = ["noise", str(out / "audit.nc"), "--epsilon", "2", "--method", "bottleneck"]
    assert main([*noise, "--out", str(tmp_path / "noise.json"), "--quiet"]) == 0
    assert main([*words, *asked, "--report-names"]) == 2
    assert "--report-names and --pseudonyms contradict" in capsys.readouterr().err


def small_run(tmp_path, *options):
    """Audit three people with running numbers under pseudonyms; return them as they were saved."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(
        {
            "week": np.repeat(np.arange(20), 3),
            "person": np.tile([1, 2, 3], 20),
            "kwh": rng.gamma(2.0, 1.0, 60),
        }
    )
    table = tmp_path / "people.csv"
    frame.to_csv(table, index=False)
    words = [
        "audit",
        str(table),
        "--verbose",
        "--database",
        "week",
        "--individual",
        "person",
        "--query",
    ]
    words += ["sum:kwh", "--draws", "10", "--chains", "2", "--seed", "1", "--model", "bootstrap"]
    words += ["--epsilon", "0.5", "--out", str(tmp_path / "out"), "--pseudonyms", *options]
    code = main(words)
    if code:
        return code
    return edp.load(tmp_path / "out" / "audit.nc").individuals["individual"].values.tolist()


@pytest.mark.full
def test_pseudonyms_of_running_numbers_cannot_be_listed_from_the_file(tmp_path, capsys):
    first = small_run(tmp_path)
    assert "The secret key of the pseudonyms is kept nowhere." in capsys.readouterr().out
    assert not set(first) & set(small_run(tmp_path, "--quiet"))
    # what the file holds, with the labels put back in any order: all that a derived key is made of
    saved = edp.load(tmp_path / "out" / "audit.nc")
    hidden = set(saved.individuals["individual"].values)
    for order in itertools.permutations(range(3)):
        guess = saved.to_datatree()
        del guess.attrs["pseudonyms"]
        people = saved.individuals.isel(individual=list(order))
        guess["individuals"] = xr.DataTree(people.assign_coords(individual=np.array([1, 2, 3])))
        assert not hidden & set(pseudonym_table(edp.Audit(guess)).index)


@pytest.mark.full
def test_a_key_is_made_kept_private_and_used_again(tmp_path):
    key = tmp_path / "keys" / "pseudonyms.key"
    first = small_run(tmp_path, "--pseudonym-key", str(key))
    assert key.stat().st_mode & 0o777 == 0o600
    text = key.read_text()
    assert len(text) == 64
    assert small_run(tmp_path, "--pseudonym-key", str(key)) == first
    assert key.read_text() == text
    frame = pd.read_csv(tmp_path / "people.csv")
    found = edp.Databases.from_table(frame, database="week", individual="person")
    audit = edp.audit(
        found.respond(edp.queries.Sum("kwh")), model=edp.SmoothedBootstrap(), **OPTIONS
    )
    table = pseudonym_table(audit, key=text)
    assert sorted(table.loc[first, "individual"]) == [1, 2, 3]
    for path in (tmp_path / "out").iterdir():
        assert text.encode() not in path.read_bytes()


def test_a_key_that_would_be_handed_on_or_guessed_is_refused(tmp_path, capsys):
    short = tmp_path / "short.key"
    short.write_text("secret\n")
    cases = {
        (tmp_path / "out" / "a.key"): "outside of the folder of the results",
        (tmp_path / "people.csv"): "a file of its own",
        short: "must have at least 16 bytes, found 6",
        tmp_path: "cannot read",
    }
    for path, message in cases.items():
        assert small_run(tmp_path, "--pseudonym-key", str(path)) == 2
        assert message in " ".join(capsys.readouterr().err.split())
    words = [
        "audit",
        str(tmp_path / "people.csv"),
        "--verbose",
        "--database",
        "week",
        "--individual",
        "person",
    ]
    words += ["--query", "sum:kwh", "--out", str(tmp_path / "out"), "--pseudonym-key", str(short)]
    assert main(words) == 2
    assert "give --pseudonyms with it" in capsys.readouterr().err
