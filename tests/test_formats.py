"""Tables as spreadsheets and offices of any country write them are one table."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
import warnings
import zipfile
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import edp_bayes as edp
from edp_bayes.exceptions import EdpBayesWarning, InputTypeError, InvalidInputError
from edp_bayes.records.engine import EngineSource
from edp_bayes.tables import large_texts
from edp_bayes.tables.marks import Marks, decide, shown
from edp_bayes.tables.packed import unpacked
from tests.command_line import refused

RNG = np.random.default_rng(7)
ROWS = 240
PLAIN = pd.DataFrame(
    {
        "woche": np.repeat(np.arange(1, 13), 20),
        "kundin": [f"Jürgen {k}" for k in np.tile(np.arange(10), 24)],
        "betrag": (RNG.gamma(2.0, 900.0, ROWS)).round(2),
        "liter": RNG.gamma(2.0, 1.0, ROWS).round(3),
    }
)


@pytest.fixture(params=[False, True], ids=["read", "engine"])
def engine(request, monkeypatch):
    """Files are read into memory, or by the engine for large ones, in small blocks."""
    if request.param:
        monkeypatch.setattr(large_texts, "MOST_BYTES", 1)
        monkeypatch.setattr(large_texts, "MOST_COMPRESSED", 1)
        monkeypatch.setattr(large_texts, "BLOCK", 700)
    return request.param


def respond(source, column="betrag", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        databases = edp.Databases.from_table(
            source, database="woche", individual="kundin", **options
        )
        return databases, databases.respond(edp.queries.Sum(column))


EXPECTED = {name: respond(PLAIN, name)[1] for name in ("betrag", "liter")}


def number(value, decimal, thousands):
    text = f"{value:,}".translate(str.maketrans({",": "T", ".": "D"}))
    return text.replace("T", thousands).replace("D", decimal)


def text(separator=",", decimal=".", thousands="", table=PLAIN):
    table = table.copy()
    for name in ("betrag", "liter"):
        table[name] = [number(value, decimal, thousands) for value in table[name]]
    return table.to_csv(index=False, sep=separator)


FORMS = {
    "semicolons and decimal commas": (";", ",", "", "semicolons between values and decimal commas"),
    "tabs": ("\t", ".", "", "tabs between values"),
    "bars": ("|", ".", "", "bars between values"),
    "German thousands": (";", ",", ".", "decimal commas and dots between thousands"),
    "Swiss": (";", ".", "'", "apostrophes between thousands"),
    "typographic": (";", ",", "\u2019", "apostrophes between thousands"),
    "French": (";", ",", "\u202f", "blanks between thousands"),
    "blanks": ("\t", ",", " ", "blanks between thousands"),
    "American": (",", ".", ",", "commas between thousands"),
    "quoted decimal commas": (",", ",", ".", "decimal commas"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", FORMS)
def test_marks_are_found_where_they_are_plain_and_said(name, tmp_path, engine):
    separator, decimal, thousands, said = FORMS[name]
    path = tmp_path / "a.csv"
    path.write_text(text(separator, decimal, thousands), encoding="utf-8")
    for column in ("betrag", "liter"):
        databases, found = respond(path, column)
        assert isinstance(databases._source, EngineSource) is engine
        assert found.fingerprint == EXPECTED[column].fingerprint
        assert found.individual.tolist() == EXPECTED[column].individual.tolist()
    assert said.split(" and ")[-1] in respond(path)[1].read_as


def test_what_was_found_stands_in_the_settings(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(text(";", ",", "."), encoding="utf-8")
    responses = respond(path)[1]
    options = {"epsilon": [0.5], "draws": 20, "tune": 20, "chains": 1, "progressbar": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EdpBayesWarning)
        audit = edp.audit(responses, random_seed=1, **options)
    assert (
        audit.settings["read_as"]
        == responses.read_as
        == ("Read with semicolons between values, decimal commas and dots between thousands.")
    )
    assert EXPECTED["betrag"].read_as == ""


@pytest.mark.parametrize("form", ["tsv", "txt", "csv.gz", "tsv.gz", "bom", "utf-16", "utf-16-le",
                                  "utf-16-be", "cp1252", "latin-1", "folder"])  # fmt: skip
def test_files_of_other_names_and_encodings(form, tmp_path, engine):
    written, options, path = text(";", ","), {}, tmp_path / "a.csv"
    if form in ("tsv", "tsv.gz"):
        written = text("\t", ",")
    content = written.encode()
    if form in ("tsv", "txt", "csv.gz", "tsv.gz"):
        path = tmp_path / f"a.{form}"
        content = gzip.compress(content) if form.endswith("gz") else content
    elif form == "bom":
        content = b"\xef\xbb\xbf" + content
    elif form.startswith("utf"):
        content = written.encode(form)
    elif form in ("cp1252", "latin-1"):
        content, options = written.encode(form), {"encoding": form}
    path.write_bytes(content)
    if form == "folder":
        half = PLAIN["woche"] < 7
        for name, rows in (("a.csv", PLAIN[half]), ("b.txt", PLAIN[~half])):
            (tmp_path / name).write_text(text(";", ",", ".", table=rows), encoding="utf-8")
        path = tmp_path
    found = respond(path, **options)[1]
    assert found.fingerprint == EXPECTED["betrag"].fingerprint
    assert found.individual[0] == "Jürgen 0"
    assert ("the encoding" in found.read_as) is (form.startswith("utf") or bool(options))


def test_an_encoding_that_is_not_plain_is_asked_for(tmp_path, engine):
    path = tmp_path / "a.csv"
    path.write_bytes(text(";", ",").encode("cp1252"))
    with pytest.raises(InvalidInputError, match=r"not UTF-8; .* encoding='cp1252' \(--encoding"):
        respond(path)
    (tmp_path / "b.csv").write_bytes("größe,x\n1,2\n".encode("cp1252"))
    with pytest.raises(InvalidInputError, match=r"not UTF-8; .*\(--encoding cp1252\)"):
        respond(tmp_path / "b.csv")


UNCLEAR = [(";", "1.2{:02}"), (";", "1,2{:02}"), (",", '"1,2{:02}"'), ("\t", "12.3{:02}")]


@pytest.mark.full
@pytest.mark.parametrize(("separator", "value"), UNCLEAR)
def test_a_thousand_that_may_be_one_is_asked_for(separator, value, tmp_path, engine):
    path = tmp_path / "a.csv"
    rows = [(w, f"k{k}", value.format((7 * w * w + k) % 99)) for w in range(12) for k in range(4)]
    lines = [("woche", "kundin", "betrag"), *rows]
    path.write_text("".join(f"{separator.join(map(str, line))}\n" for line in lines))
    with pytest.raises(InvalidInputError, match=r"'betrag' .*1,234 and 1\.234 may: .*--decimal"):
        respond(path)
    point, comma = (respond(path, decimal=mark)[1].response for mark in (".", ","))
    assert 999.0 < max(point[0] / comma[0], comma[0] / point[0]) < 1001.0
    mark = "." if "." in value else ","
    other = respond(path, thousands=mark)[1].response
    assert other[0] == max(point[0], comma[0])


def test_points_and_commas_of_one_file_are_asked_for(tmp_path, engine):
    path = tmp_path / "a.csv"
    table = PLAIN.assign(betrag=[number(x, ",", "") for x in PLAIN["betrag"]])
    path.write_text(table.to_csv(index=False, sep=";"), encoding="utf-8")
    with pytest.raises(InvalidInputError, match=r"points \('liter'\) and decimal commas \('betrag"):
        respond(path)
    assert respond(path, decimal=",")[1].fingerprint == EXPECTED["betrag"].fingerprint
    found = respond(path, "liter", decimal=".")[1]
    assert found.fingerprint == EXPECTED["liter"].fingerprint
    with pytest.raises(InputTypeError, match="'betrag' must be numeric"):
        respond(path, decimal=".")


def test_numbers_of_a_plain_file_are_never_doubted(tmp_path, engine):
    path = tmp_path / "a.csv"
    PLAIN.assign(betrag=1.234, liter=[1.0 + k for k in range(ROWS)]).to_csv(path, index=False)
    found = respond(path, "liter")[1]
    assert found.read_as == ""


def test_points_beside_decimal_commas_are_thousands_whatever_is_between_values(tmp_path, engine):
    path = tmp_path / "a.csv"
    rows = [f'{w},k{k},"{w + k},50",1.{w:03}' for w in range(12) for k in range(4)]
    path.write_text("\n".join(["woche,kundin,betrag,liter", *rows]))
    assert respond(path, "liter")[1].response[1] == 4 * 1001.0
    assert respond(path)[1].response[0] == 0.5 + 1.5 + 2.5 + 3.5
    path.write_text("\n".join(["woche,kundin,betrag,liter", *rows]).replace('"', "").replace(
        ",50,", ","))  # fmt: skip
    assert respond(path, "liter")[1].response[1] == pytest.approx(4 * 1.001)


def test_two_separators_are_asked_for(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("woche;kundin,x\n" + "".join(f"{w};{k},1\n" for w in range(9) for k in (1, 2)))
    with pytest.raises(InvalidInputError, match=r"as many commas each as semicolons: .*--separat"):
        respond(path)
    with pytest.raises(InvalidInputError, match=r"there is no column 'woche'"):
        respond(path, separator=",")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ";;"}, "separator must be one character"),
        ({"decimal": ";"}, "decimal must be"),
        ({"thousands": "x"}, "thousands must be one of"),
        ({"decimal": ".", "thousands": "."}, "must differ"),
        ({"encoding": "latin-99"}, "encoding must be the name of one"),
        ({"date_format": "dd.mm"}, "date_format must be unix, .* or like %d"),
        ({"time_zone": "Europe/Nowhere"}, "time_zone must be the name of a zone"),
    ],
)
def test_options_that_are_none_are_refused(options, message, tmp_path):
    with pytest.raises(InvalidInputError, match=message):
        respond(tmp_path / "none.csv", **options)


def test_options_of_text_are_refused_for_other_tables(tmp_path):
    PLAIN.to_parquet(tmp_path / "a.parquet")
    for source in (PLAIN, tmp_path / "a.parquet", str(tmp_path)):
        with pytest.raises(InvalidInputError, match=r"decimal= \(--decimal\) is for text files"):
            respond(source, decimal=",")


def test_subsamples_are_read_alike(tmp_path, engine):
    path = tmp_path / "a.csv"
    path.write_text(text(";", ",").replace("0", "1"), encoding="cp1252")
    options = {"individual": "kundin", "size": 5, "count": 9, "random_seed": 1}
    with pytest.raises(InvalidInputError, match="encoding"):
        edp.Databases.subsamples(path, **options)
    databases = edp.Databases.subsamples(path, encoding="cp1252", **options)
    assert databases.respond(edp.queries.Sum("liter")).read_as.startswith("Read with semicolons")


# Archives, workbooks, standard input


@pytest.mark.parametrize("members", [1, 2])
def test_archives(members, tmp_path, engine):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for part in range(members):
            rows = PLAIN[PLAIN["woche"] % members == part]
            archive.writestr(f"out/{part}.csv", text(";", ",", ".", table=rows))
        archive.writestr("__MACOSX/._0.csv", "x")
    assert respond(path)[1].fingerprint == EXPECTED["betrag"].fingerprint


def test_archives_that_hold_no_table_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.zip"
    path.write_bytes(b"PK\x03\x04 half")
    with pytest.raises(InvalidInputError, match="not a whole archive"):
        respond(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "x")
        archive.writestr("b.zip", "x")
    with pytest.raises(InvalidInputError, match=r"must hold files .* found b\.zip"):
        respond(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../a.csv", b"0" * 10**6)
    folder, [file] = unpacked(path)
    assert file == str(folder.path / "0000_a.csv")
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=10**5))
    with pytest.raises(InvalidInputError, match=r"holds 0\.001 GB, and 0\.0001 GB are free.*TMPD"):
        respond(path)


def test_a_small_file_that_unpacks_to_a_large_one_is_read_as_that(tmp_path, monkeypatch):
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(text(";", ",").encode() + b"12;Bob;0;0\n" * 20_000))
    assert not isinstance(respond(path)[0]._source, EngineSource)
    monkeypatch.setattr(large_texts, "MOST_BYTES", 100_000)
    monkeypatch.setattr(large_texts, "MOST_COMPRESSED", 10**6)
    assert isinstance(respond(path)[0]._source, EngineSource)


def test_workbooks(tmp_path):
    pytest.importorskip("fastexcel")
    openpyxl = pytest.importorskip("openpyxl", reason="writes the workbook")
    book = openpyxl.Workbook()
    sheet = book.active
    days = pd.Timestamp("2024-01-01") + 7 * pd.to_timedelta(PLAIN["woche"], "D")
    table = PLAIN.assign(tag=days)
    for row in [list(table.columns), *table.itertuples(index=False)]:
        sheet.append([x.to_pydatetime() if isinstance(x, pd.Timestamp) else x for x in row])
    book.create_sheet("notes")
    path = tmp_path / "a.xlsx"
    book.save(path)
    databases, found = respond(path)
    assert found.fingerprint == EXPECTED["betrag"].fingerprint
    assert databases.database.tolist() == list(range(1, 13))
    weeks = edp.Databases.from_table(
        path, database="tag", individual="kundin", database_every="week"
    )
    assert weeks.database.dtype.kind == "M"
    sheet = book.create_sheet("more")
    sheet.append(["a"])
    sheet.append([1])
    book.save(path)
    with pytest.raises(InvalidInputError, match="records in one sheet, found in 'Sheet', 'more'"):
        respond(path)
    (tmp_path / "b.xlsx").write_bytes(b"PK")
    with pytest.raises(InvalidInputError, match=r"cannot read .*b\.xlsx as a workbook"):
        respond(tmp_path / "b.xlsx")


def test_workbooks_without_a_reader_are_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "fastexcel", None)
    (tmp_path / "a.xlsx").write_bytes(b"PK")
    with pytest.raises(InvalidInputError, match=r"pip install 'edp_bayes\[excel\]'; or save it as"):
        respond(tmp_path / "a.xlsx")


@pytest.mark.parametrize("form", ["csv", "gz", "parquet", "zip"])
def test_standard_input(form, monkeypatch):
    content = text(";", ",", ".").encode()
    if form == "gz":
        content = gzip.compress(content)
    elif form == "parquet":
        buffer = io.BytesIO()
        PLAIN.to_parquet(buffer)
        content = buffer.getvalue()
    elif form == "zip":
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr("a.csv", content)
        content = buffer.getvalue()
    stdin = SimpleNamespace(buffer=io.BytesIO(content), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stdin)
    assert respond("-")[1].fingerprint == EXPECTED["betrag"].fingerprint


# The command line


@pytest.mark.full
def test_the_command_line_takes_and_records_them(tmp_path):
    out = tmp_path / "out"
    arguments = [
        "audit", "-", "--verbose", "--database", "woche", "--individual", "kundin",
        "--query", "sum:betrag",
        "--separator", ";", "--decimal", ",", "--thousands", ".", "--encoding", "cp1252",
        "--draws", "20", "--chains", "1", "--epsilon", "0.5", "--out", str(out),
    ]  # fmt: skip
    code = "import sys; from edp_bayes.cli import main; sys.exit(main())"
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        input=text(";", ",", ".").encode("cp1252"), capture_output=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert b"Read with semicolons between values" in done.stdout
    audit = edp.load(out / "audit.nc")
    assert '"decimal": ","' in audit.tree.attrs["source"]
    assert '"table"' not in audit.tree.attrs["source"]
    assert "the encoding cp1252" in audit.settings["read_as"]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--separator", "ab", "separator must be one character"),
        ("--decimal", "x", "decimal must be"),
        ("--encoding", "none", "encoding must be the name"),
        ("--date-format", "%Q", "date_format must be"),
        ("--time-zone", "Berlin", "time_zone must be"),
    ],
)
def test_the_command_line_refuses_what_is_none_before_reading(option, value, message, capsys):
    said = refused(
        capsys, "audit", "none.csv", "--database", "w", "--individual", "k", "--query", "count",
        "--out", "out", option, value,
    )  # fmt: skip
    assert message in said


# Marks


@pytest.mark.parametrize(
    ("values", "marks"),
    [
        (["1.234,5", "3"], (",", ".")),
        (["1.234", "0,5"], (",", ".")),
        (["1,234", "0.5"], (".", ",")),
        (["1,234,567"], (".", ",")),
        (["1.234.567"], (",", ".")),
        (["-1 234,50"], (",", " ")),
        (["1'234"], (".", "'")),
        (["12,5"], (",", ".")),
    ],
)
def test_what_a_column_shows(values, marks):
    found = shown(pa.array(values))
    decided, unclear = decide({"x": found}, decimal=None, thousands=None, name="t")
    assert not unclear
    assert decided.decimal == marks[0]
    assert marks[1] in decided.thousands
    plain = [float(v.replace(marks[1], "").replace(marks[0], ".")) for v in values]
    assert decided.numbers(pa.array(values)).to_pylist() == plain


@pytest.mark.parametrize("value", ["", "12,50 €", "1.2.3", "a", "1,23,456", "12-3", "1.234.5"])
def test_what_is_no_number_stays_text(value):
    found = shown(pa.array(["1,5", value]))
    assert not Marks(",", ".").fit(found)
