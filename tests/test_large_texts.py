"""CSV files larger than memory are grouped by an engine, to the bits of a file that is read."""

from __future__ import annotations

import errno
import gc
import gzip
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import edp_bayes as edp
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.records.engine import EngineSource
from edp_bayes.tables import large_texts

RNG = np.random.default_rng(5)
ROWS = 240
PLAIN = pd.DataFrame(
    {
        "week": np.repeat(np.arange(1, 13), 20),
        "who": [f"c{k}" for k in np.tile(np.arange(10), 24)],
        "x": RNG.normal(10.0, 3.0, ROWS) * 10.0 ** RNG.integers(-3, 3, ROWS),
    }
)


def in_rows(table: pd.DataFrame, change: dict[int, object], column: str) -> pd.DataFrame:
    """Return a table in which a few cells of a column are spelt otherwise."""
    return table.assign(**{column: [change.get(k, v) for k, v in enumerate(table[column])]})


# Each differs in what only a later block of the file shows.
TABLES = {
    "plain": PLAIN,
    "whole numbers, then a fraction": in_rows(PLAIN.assign(x=7), {200: 7.25}, "x"),
    "numbers, then text": PLAIN.assign(who=[*np.tile(np.arange(10), 23), *["new"] * 10]),
    "missing, then numbers": PLAIN.assign(
        y=np.where(np.arange(ROWS) < 200, None, 3), x=PLAIN["x"].round(3)
    ),
    "padded": PLAIN.assign(who=[f"{k:03d}" if j > 150 else f"{k + 100}" for j, k in
                                enumerate(np.tile(np.arange(10), 24))]),
    "keys that floats would merge": PLAIN.assign(
        week=["2023.10" if w == 10 else f"2023.{w}" for w in PLAIN["week"]]
    ),
    "signs": in_rows(PLAIN.assign(who=np.tile(np.arange(10), 24)), {231: "+1"}, "who"),
    "dates, then times": in_rows(
        PLAIN.assign(week=(pd.Timestamp("2024-01-01") + pd.to_timedelta(PLAIN["week"] * 7, "D"))
                     .astype(str)),
        dict.fromkeys(range(220, 240), "2024-03-25 10:00:00"), "week",
    ),
    "quoted": PLAIN.assign(who=[f"Smith, {k}" for k in np.tile(np.arange(10), 24)]),
    "quotes within": PLAIN.assign(who=[f'the "{k}"' for k in np.tile(np.arange(10), 24)]),
    "NA is a name": in_rows(PLAIN, dict.fromkeys(range(9, ROWS, 10), "NA"), "who"),
    "keys of more digits than floats have": PLAIN.assign(
        who=[2**53 + k for k in np.tile(np.arange(10), 24)]
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(large_texts, "BLOCK", 600)


@pytest.fixture
def nothing_in_memory(monkeypatch):
    def switch(on: bool) -> None:
        monkeypatch.setattr(large_texts, "MOST_BYTES", 1 if on else 10**9)
        monkeypatch.setattr(large_texts, "MOST_COMPRESSED", 1 if on else 10**9)

    return switch


def respond(source, query=None, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        databases = edp.Databases.from_table(source, database="week", individual="who", **options)
        responses = databases.respond(query or edp.queries.Sum("x"))
    return databases, responses


def outcome(source, switch, on):
    switch(on)
    databases, responses = respond(source)
    assert isinstance(databases._source, EngineSource) is on
    return (
        responses.fingerprint,
        responses.individual.tolist(),
        responses.database.tolist(),
        [text for text in responses.warnings if "not looked" not in text],
    )


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_those_of_a_file_that_is_read_whole(name, tmp_path, nothing_in_memory):
    path = tmp_path / "records.csv"
    TABLES[name].to_csv(path, index=False)
    assert outcome(path, nothing_in_memory, True) == outcome(path, nothing_in_memory, False)


@pytest.mark.parametrize("large", [True, False])
def test_codes_with_zeros_before_them_are_no_numbers(large, tmp_path, nothing_in_memory):
    codes = [f"{k:05d}" if k > 150 else f" {k + 10_000} " for k in range(ROWS)]
    PLAIN.assign(code=codes).to_csv(tmp_path / "a.csv", index=False)
    nothing_in_memory(large)
    with pytest.raises(InputTypeError, match="'code' must be numeric, found values of type String"):
        respond(tmp_path / "a.csv", edp.queries.Sum("code"))


def test_times_with_an_offset_that_are_finer_than_microseconds(tmp_path, nothing_in_memory):
    times = [f"2024-01-{w:02}T10:00:00.123456789Z" for w in PLAIN["week"]]
    PLAIN.assign(week=times).to_csv(tmp_path / "a.csv", index=False)
    found = []
    for large in (True, False):
        nothing_in_memory(large)
        _, responses = respond(tmp_path / "a.csv", database_every="day")
        found.append((responses.fingerprint, responses.database.tolist()))
    assert found[0] == found[1]


@pytest.mark.parametrize("form", ["bom", "gz", "folder", "pattern", "remote", "crlf"])
def test_forms_of_files(form, tmp_path, nothing_in_memory):
    text = PLAIN.to_csv(index=False)
    home = tmp_path / "records"
    home.mkdir()
    source: object = home / "a.csv"
    if form == "bom":
        (home / "a.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    elif form == "gz":
        source = home / "a.csv.gz"
        source.write_bytes(gzip.compress(text.encode()))
    elif form == "crlf":
        (home / "a.csv").write_bytes(text.replace("\n", "\r\n").encode())
    else:
        # Whole numbers in one file, fractions in the other; nothing at all in one.
        first = PLAIN[:100].assign(y=None, x=np.arange(100))
        first.to_csv(home / "a.csv", index=False)
        PLAIN[100:].assign(y=1).to_csv(home / "b.csv.gz", index=False)
        source = {"folder": home, "pattern": f"{home}/*.csv*", "remote": f"file://{home}"}[form]
    assert outcome(source, nothing_in_memory, True) == outcome(source, nothing_in_memory, False)


WRONG = {
    "columns": (PLAIN.rename(columns={"x": "z"}), "must have the same columns"),
    "types": (PLAIN.assign(week="w"), "key column 'week' must have one type in all files"),
    "text": (in_rows(PLAIN, {230: "many"}, "x"), "column 'x' must have one type in all files"),
}


@pytest.mark.parametrize("name", WRONG)
def test_files_that_do_not_agree_are_refused_alike(name, tmp_path, nothing_in_memory):
    PLAIN.to_csv(tmp_path / "a.csv", index=False)
    table, message = WRONG[name]
    table.to_csv(tmp_path / "b.csv", index=False)
    nothing_in_memory(True)
    with pytest.raises(InvalidInputError, match=message):
        respond(tmp_path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"week,who,x\n1,\xff,2\n" * 1, "column 'who' of .* is not UTF-8"),
        (b"week,who,x\n" + b"1,a,2\n" * 300 + b"1,\xff,2\n", "column 'who' of .* is not UTF-8"),
        (b"week,who,x\n" + b"1,a,2\n" * 300 + b"1,a\n", "Expected 3 columns, got 2"),
        (b"", "Empty CSV file"),
    ],
)
def test_files_that_are_no_table(text, message, tmp_path, nothing_in_memory):
    (tmp_path / "a.csv").write_bytes(text)
    nothing_in_memory(True)
    with pytest.raises(InvalidInputError, match=message):
        respond(tmp_path / "a.csv")


def test_a_full_disk_is_one_sentence(tmp_path, nothing_in_memory, monkeypatch):
    PLAIN.to_csv(tmp_path / "a.csv", index=False)
    nothing_in_memory(True)

    def full(*arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq, "ParquetWriter", full)
    with pytest.raises(InvalidInputError, match=r"No space left on device.*TMPDIR"):
        respond(tmp_path / "a.csv")


def test_what_was_written_is_private_and_removed(tmp_path, nothing_in_memory, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    PLAIN.to_csv(tmp_path / "a.csv", index=False)
    nothing_in_memory(True)
    held = respond(tmp_path / "a.csv")
    [folder] = tmp_path.glob("edp_bayes_csv_*")
    assert folder.stat().st_mode & 0o077 == 0
    assert not list(Path(folder).glob("*.part"))
    del held
    gc.collect()
    assert not list(tmp_path.glob("edp_bayes_csv_*"))
