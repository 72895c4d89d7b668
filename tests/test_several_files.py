"""Records in folders, partitions, patterns, lists and remote places are those of one file."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import edp_bayes as edp
from edp_bayes.exceptions import InputTypeError, InvalidInputError
from edp_bayes.tables.several_files import dataset_of


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "week": np.repeat(np.arange(20), 30),
            "who": np.tile([f"{k:02d}" for k in range(30)], 20),
            "x": rng.normal(10.0, 1.0, 600),
        }
    )


def respond(source, database="week"):
    databases = edp.Databases.from_table(source, database=database, individual="who")
    return databases.respond(edp.queries.Sum("x"))


@pytest.fixture(scope="module")
def folder(records, tmp_path_factory):
    """Return a folder of the same records in many forms."""
    home = tmp_path_factory.mktemp("records")
    for name in ("parquet", "csv"):
        (home / name).mkdir()
    for part, rows in records.groupby(records["week"] // 10):
        rows.to_parquet(home / "parquet" / f"{part}.parquet")
        rows.to_csv(home / "csv" / f"{part}.csv", index=False)
    (home / "parquet" / "_SUCCESS").touch()
    (home / "parquet" / "_temporary").mkdir()
    (home / "parquet" / "_temporary" / "half.parquet").write_bytes(b"PAR1")
    records.assign(year=records["week"] // 10).to_parquet(home / "parts", partition_cols=["year"])
    return home


@pytest.mark.parametrize(
    "form",
    [
        lambda home: home / "parquet",
        lambda home: str(home / "parquet" / "*.parquet"),
        lambda home: sorted((home / "parquet").glob("*.parquet"))[::-1],
        lambda home: ds.dataset(sorted(map(str, (home / "parquet").glob("*.parquet")))),
        lambda home: home / "parts",
        lambda home: str(home / "parts" / "**" / "*.parquet"),
        lambda home: home / "csv",
        lambda home: str(home / "csv" / "?.csv"),
    ],
)
def test_several_files_are_one_table(form, folder, records):
    assert respond(form(folder)).fingerprint == respond(records).fingerprint


def test_folders_of_partitions_are_a_key(folder):
    responses = respond(folder / "parts", ["year", "week"])
    assert responses.database[:2].tolist() == [(0, 0), (0, 1)]
    assert responses.n_databases == 20


def test_names_of_folders_may_be_dates(records, tmp_path):
    """Months of dates in folders' names are those of a column of dates."""
    days = records.assign(week=pd.Timestamp("2024-01-01") + 15 * pd.to_timedelta(records.week, "D"))
    days["week"] = days["week"].dt.date
    days.to_parquet(tmp_path / "days", partition_cols=["week"])
    keys = {"database": "week", "individual": "who", "database_every": "month"}
    found, expected = (
        edp.Databases.from_table(source, **keys).respond(edp.queries.Sum("x"))
        for source in (tmp_path / "days", days)
    )
    assert found.n_databases == 10
    assert found.fingerprint == expected.fingerprint
    assert (found.database == expected.database).all()


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "-20"], pa.int32()),
        (["1", "3000000000"], pa.string()),
        (["2024-02-29", "2024-03-01"], pa.date32()),
        (["2024-02-30"], pa.string()),
        (["2024-02-29", "7"], pa.string()),
        (["a%20b"], pa.string()),
        (["__HIVE_DEFAULT_PARTITION__", "4"], pa.int32()),
        (["__HIVE_DEFAULT_PARTITION__"], pa.string()),
    ],
)
def test_what_names_of_folders_say(values, kind, tmp_path):
    for value in values:
        (tmp_path / f"k={value}").mkdir()
        pq.write_table(pa.table({"x": [1.0]}), tmp_path / f"k={value}" / "0.parquet")
    found = dataset_of(tmp_path).files
    assert found.schema.field("k").type == kind
    column = found.to_table()["k"]
    assert column.null_count == ("__HIVE_DEFAULT_PARTITION__" in values)
    if kind == pa.string():
        texts = {value.replace("%20", " ") for value in values if not value.startswith("__")}
        assert set(column.drop_null().to_pylist()) == texts


@pytest.mark.parametrize("form", ["parquet", "csv", "parquet/*.parquet", "parquet/1.parquet"])
def test_a_remote_place_is_read_through_fsspec(form, folder, records):
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    for name in ("parquet", "csv"):
        for path in (folder / name).glob(f"?.{name}"):
            system.pipe_file(f"/shop/{name}/{path.name}", path.read_bytes())
    found = respond(f"memory://shop/{form}")
    expected = records[records["week"] // 10 == 1] if form.endswith("1.parquet") else records
    if expected is not records:
        assert found.n_databases == 10
        return
    assert found.fingerprint == respond(records).fingerprint


def test_files_that_do_not_agree_are_refused(records, tmp_path):
    half = records["week"] < 10
    records[half].to_parquet(tmp_path / "a.parquet")
    records[~half].assign(week=lambda f: f["week"].astype(str)).to_parquet(tmp_path / "b.parquet")
    with pytest.raises(InvalidInputError, match="column 'week' must have one type in all files"):
        respond(tmp_path)
    (tmp_path / "b.parquet").unlink()
    records.to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(InvalidInputError, match="one format, found Parquet and CSV"):
        respond(tmp_path)
    (tmp_path / "a.parquet").unlink()
    records.rename(columns={"x": "z"}).to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(InvalidInputError, match=r"d\.csv has no column 'x', .* are week, who, z"):
        respond(tmp_path)
    records.assign(week="w").to_csv(tmp_path / "d.csv", index=False)
    with pytest.raises(InvalidInputError, match="key column 'week' must have one type"):
        respond(tmp_path)


@pytest.mark.parametrize("cut", [slice(None), slice(None, None, -1)])
def test_a_column_that_a_file_lacks_is_named_with_the_file(records, tmp_path, cut):
    names = ["a.parquet", "b.parquet"][cut]
    records[records["week"] < 10].assign(y=1.0).to_parquet(tmp_path / names[0])
    records[records["week"] >= 10].to_parquet(tmp_path / names[1])
    databases = edp.Databases.from_table(tmp_path, database="week", individual="who")
    assert databases.respond(edp.queries.Sum("x")).fingerprint == respond(records).fingerprint
    with pytest.raises(InvalidInputError, match=rf"'y' must be in all files.*{names[1]} has none"):
        databases.respond(edp.queries.Sum("y"))
    with pytest.raises(InvalidInputError, match=rf"'y' must be in all files.*{names[1]} has none"):
        respond(tmp_path, database=["week", "y"])


def test_a_column_of_another_type_than_names_of_folders_say_is_refused(records, tmp_path):
    for week, rows in records.groupby("week"):
        (tmp_path / f"week={week}").mkdir()
        rows.assign(week=f"{week}").to_parquet(tmp_path / f"week={week}" / "part.parquet")
    with pytest.raises(InvalidInputError, match=r"'week' .* int32 in the names of folders and .*"):
        respond(tmp_path)


def test_text_is_of_one_type_however_it_was_written(records, tmp_path):
    table = pa.Table.from_pandas(records, preserve_index=False)
    for name, kind in (("a", pa.large_string()), ("b", pa.string())):
        text = table.set_column(1, "who", table["who"].cast(kind))
        pq.write_table(text.slice(300 * (name == "b"), 300), tmp_path / f"{name}.parquet")
    assert respond(tmp_path).fingerprint == respond(records).fingerprint
    words = table["who"].cast(pa.string()).combine_chunks().dictionary_encode()
    pq.write_table(table.set_column(1, "who", words), tmp_path / "b.parquet")
    with pytest.raises(InvalidInputError, match=r"'who' must have one type.*dictionary.*b\.parq"):
        respond(tmp_path)


def test_files_after_one_without_values_must_agree(records, tmp_path):
    for name, kind in (("a", pa.null()), ("b", pa.int64()), ("c", pa.float64())):
        table = pa.table({"week": [1], "who": ["a"], "x": pa.array([None], kind)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    with pytest.raises(InvalidInputError, match=r"'x' must have .* int64 in .*b\.parq.* double in"):
        respond(tmp_path)


def test_what_is_not_there_is_said_with_what_works(tmp_path, monkeypatch):
    with pytest.raises(InvalidInputError, match="no such file there; what works is a file"):
        respond(tmp_path / "none-*.parquet")
    with pytest.raises(InvalidInputError, match="no such file there"):
        respond(tmp_path)
    with pytest.raises(InvalidInputError, match="none: there is no such file or folder"):
        respond(tmp_path / "none")
    with pytest.raises(InvalidInputError, match=r"this machine, found s3://shop/1\.parquet; give"):
        respond(["s3://shop/1.parquet", "s3://shop/2.parquet"])
    with pytest.raises(InvalidInputError, match="there is no such file"):
        respond([tmp_path / "a.parquet"])
    with pytest.raises(InputTypeError, match="must be a dataframe"):
        respond([tmp_path, 5])
    (tmp_path / "a.xlsx").touch()
    with pytest.raises(InvalidInputError, match=r"found .*a\.xlsx"):
        respond(tmp_path)
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(InvalidInputError, match="needs fsspec"):
        respond("s3://bucket/folder")
