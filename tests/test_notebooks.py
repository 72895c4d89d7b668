"""Every notebook runs from top to bottom, with the real data and without, and is fit to be seen."""

import os
import re
import socket
from pathlib import Path

import nbformat
import numpy as np
import pytest
import xarray as xr
from nbclient import NotebookClient

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
# Enough to run every cell; the committed outputs have the notebooks' own numbers.
DRAWS = "30"
FEWER = {"08_releases_and_attacks": "12"}  # every draw of what is composed takes a second
LARGEST = 1_500_000
FROM_FILES = ("01_", "05_", "06_", "07_")
# Cells that read a file or make up for it, and those they need.
READING = r"^import|^shop = |data_file\("

notebooks = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return nbformat.read(path, as_version=4)


@pytest.fixture(scope="module")
def kernel():
    """Start one kernel for all: a new one would import everything again."""
    client = NotebookClient(
        nbformat.v4.new_notebook(),
        timeout=600,
        kernel_name="python3",
        resources={"metadata": {"path": str(ROOT / "notebooks")}},
    )
    with client.setup_kernel():
        yield client


def run(kernel, path, folder, only=""):
    """Run a notebook, or its cells that match, without any name of another; return its texts."""
    known = {"EDP_BAYES_DATA": str(folder), "EDP_BAYES_DRAWS": FEWER.get(path.stem, DRAWS)}
    start = f"%reset -f\n__import__('os').environ.update({known})"
    notebook = read(path)
    chosen = [cell for cell in notebook.cells if re.search(only, cell.source)]
    notebook.cells = [nbformat.v4.new_code_cell(start), *chosen]
    kernel.nb = notebook
    for index, cell in enumerate(notebook.cells):
        kernel.execute_cell(cell, index)
    return "\n".join(texts(notebook))


def texts(notebook):
    """Yield every text of the outputs."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if output.output_type == "stream":
                yield output.text
            elif output.output_type == "error":
                yield "\n".join(output.traceback)
            else:
                data = output.data.items()
                yield from (str(text) for kind, text in data if kind.startswith("text/"))


def test_there_is_a_notebook_for_each_paper_and_use():
    assert [path.name[:3] for path in NOTEBOOKS] == [f"{k:02d}_" for k in range(1, 10)]


@pytest.mark.full
@notebooks
def test_runs_without_data(kernel, path, tmp_path, found_data):
    # Where the rest runs on the real data, below, it need not run on simulated ones, too.
    twice = path.name.startswith(FROM_FILES) and found_data is not None
    printed = run(kernel, path, tmp_path, only=READING if twice else "")
    if path.name.startswith(FROM_FILES):
        assert "simulated" in printed


@pytest.mark.full
@pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if path.name.startswith(FROM_FILES)], ids=lambda p: p.stem
)
def test_runs_on_the_real_data(kernel, path, data_dir):
    # The others read no file, so that the run above is all there is to run.
    assert "simulated" not in run(kernel, path, data_dir)


@pytest.mark.full
def test_the_cell_for_gpcp_reads_a_file_of_its_layout(kernel, tmp_path):
    # Made-up rain: 41 years of months on the 2.5 degree grid, as NOAA stores them.
    rng = np.random.default_rng(1)
    time = np.arange("1979-01", "2020-01", dtype="datetime64[M]").astype("datetime64[ns]")
    lat, lon = np.arange(-88.75, 90, 2.5), np.arange(1.25, 360, 2.5)
    usual = rng.gamma(2.0, 1.5, (1, lat.size, lon.size))
    rain = usual * rng.gamma(4.0, 0.25, (time.size, lat.size, lon.size))
    axes = {"time": time, "lat": lat, "lon": lon}
    stored = xr.Dataset({"precip": (("time", "lat", "lon"), rain.astype(np.float32))}, axes)
    stored.to_netcdf(tmp_path / "precip.mon.mean.nc", engine="h5netcdf")
    printed = run(kernel, NOTEBOOKS[0], tmp_path, only=r"^import|data_file\(\"precip")
    assert re.search(r"places +10368\.0+ +10368\.0+", printed)
    assert re.search(r"databases +41\.0+ +41\.0+", printed)


@notebooks
def test_is_committed_with_outputs(path):
    cells = [cell for cell in read(path).cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    pictures = [
        output for cell in cells for output in cell.outputs if "image/png" in output.get("data", {})
    ]
    assert len(pictures) >= 2
    assert path.stat().st_size < LARGEST


@notebooks
def test_outputs_tell_nothing_of_the_machine(path):
    notebook = read(path)
    streams = [o for c in notebook.cells for o in c.get("outputs", []) if o.output_type == "stream"]
    assert {output.name for output in streams} == {"stdout"}
    printed = "\n".join(texts(notebook))
    for word in (socket.gethostname(), os.path.expanduser("~"), str(ROOT), "Warning:", "Traceback"):
        assert word not in printed
    assert not re.search(r"(?<![\w.<])/(tmp|home|root|usr|Users|var)/", printed)


@notebooks
def test_every_picture_is_followed_by_words(path):
    cells = read(path).cells
    for at, cell in enumerate(cells):
        kinds = [
            "picture" if "image/png" in output.get("data", {}) else "words"
            for output in cell.get("outputs", [])
        ]
        after = cells[at + 1] if at + 1 < len(cells) else None
        if "picture" in kinds:
            said = "words" in kinds or (after is not None and after.cell_type == "markdown")
            assert said, f"cell {at} of {path.name} shows a picture and says nothing"


@notebooks
def test_words_are_words_and_one_title(path):
    words = [cell.source for cell in read(path).cells if cell.cell_type == "markdown"]
    lines = "\n".join(words).splitlines()
    headings = [line for line in lines if line.startswith("#")]
    assert headings[0] == lines[0]
    assert [line for line in headings if not re.match(r"#{2,4} \S", line)] == [lines[0]]
    assert re.match(r"# [^#\s]", lines[0])


@pytest.mark.parametrize("number", ["0.12", "0.085", "0.007", "10,368"])
def test_the_published_numbers_stand_in_the_first(number):
    words = [cell.source for cell in read(NOTEBOOKS[0]).cells if cell.cell_type == "markdown"]
    assert number in "\n".join(words)


@notebooks
def test_links_lead_somewhere(path):
    for cell in read(path).cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\((?!http)([^)#]+)", cell.source):
                assert (path.parent / target).exists(), target
