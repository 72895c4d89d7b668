"""What the README shows is what happens."""

import contextlib
import inspect
import io
import re
import shlex
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import edp_bayes as edp
from edp_bayes.cli.app import app

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
WHICH_TOOL = (ROOT / "docs" / "guide" / "which_tool.md").read_text(encoding="utf-8")
OURS = "edp_bayes"
# Installed for the tests, so that what is said about them can be looked up.
PEERS = {
    "dp-accounting": {
        "calibrate_dp_mechanism": "dp_accounting",
        "from_two_probability_mass_functions": "dp_accounting.pld.privacy_loss_distribution",
    },
    "OpenDP": {"binary_search_param": "opendp.mod", "new_privacy_profile": "opendp.measures"},
}


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", README, flags=re.M | re.S)


def shell_commands():
    """Return the indented commands, continued lines joined."""
    joined = README.replace("\\\n", " ")
    return [line.strip() for line in joined.splitlines() if re.match(r" {4}(uv|pip) ", line)]


def peer_rows():
    """Return the table of peers: the name without its link, and the other cells by column."""
    lines = WHICH_TOOL.split("## By the names of their interface")[1].split("\n## ")[0].splitlines()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in lines
        if line.startswith("|")
    ]
    head, body = rows[0], rows[2:]
    return {
        re.sub(r"\[(.*?)\]\(.*?\)", r"\1", row[0]): dict(zip(head[1:], row[1:], strict=True))
        for row in body
    }


def run(code):
    """Run a block and return what it printed, without the blanks at ends of lines."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    return [line.rstrip() for line in printed.getvalue().splitlines()]


@pytest.mark.full
def test_the_example_prints_what_it_is_said_to():
    example, (shown,) = blocks("python")[0], blocks("text")
    assert len([line for line in example.splitlines() if line]) <= 10
    assert run(example) == [line.rstrip() for line in shown.splitlines()]


@pytest.fixture
def purchases(tmp_path, monkeypatch):
    """Go to a folder with a table of the columns that the README names."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "week": np.repeat(np.arange(30), 6),
            "customer": np.tile(list("abcdef"), 30),
            "amount": rng.gamma(2.0, 10.0, 180).round(2),
        }
    )
    table.to_parquet("purchases.parquet")


@pytest.mark.full
def test_the_second_example_runs_and_its_file_loads_again(purchases):
    run(blocks("python")[1])
    assert edp.load("audit.nc").settings["query"] == "sum:amount"


@pytest.mark.full
def test_the_audit_command_runs(purchases):
    (command,) = (line for line in shell_commands() if "edp-bayes audit" in line)
    words = shlex.split(command)
    # Everything as it stands, but on the quickest model and with few draws.
    options = [*words[3:], "--model", "bootstrap", "--draws", "30", "--report", "report.html"]
    done = CliRunner().invoke(app, options)
    assert done.exit_code == 0, done.output
    assert {"audit.nc", "summary.csv"} <= {path.name for path in Path("audit").iterdir()}
    assert Path("report.html").is_file()


def test_the_two_commands_are_those_of_the_checks():
    one, two = (line for line in shell_commands() if "audit" not in line)
    assert (one, two) == ("pip install uv && uv run edp-bayes demo", "uv run pytest")
    checks = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for command in ("pip install --quiet uv", "uv run edp-bayes demo", "uv run pytest"):
        assert command in checks
    assert CliRunner().invoke(app, ["demo", "--help"]).exit_code == 0


def test_the_queries_of_the_command_line_are_read():
    from edp_bayes.queries import parse

    sentence = README.split("`--query` takes")[1].split("`--report")[0]
    named = [text for text in re.findall(r"`([^`]+)`", sentence) if not text.startswith("-")]
    assert len(named) == 8
    for text in named:
        assert parse(text.replace(":COL", ":amount"))


def test_links_and_pictures_are_there():
    targets = re.findall(r"\]\(([^)#]+)", README)
    assert "docs/images/privacy_curve.png" in targets
    for target in targets:
        assert target.startswith("https://") or (ROOT / target).exists(), target


def test_the_picture_is_small():
    assert (ROOT / "docs" / "images" / "privacy_curve.png").stat().st_size < 150_000


def test_every_notebook_is_named():
    for path in (ROOT / "notebooks").glob("*.ipynb"):
        assert f"notebooks/{path.name}" in README


def resolve(name):
    """Return what a dotted name in the README stands for."""
    parts = name.removeprefix("edp.").split(".")
    found = edp
    for part in parts:
        found = getattr(found, part)
    return found


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`(edp\.[\w.]+)", README))))
def test_names_of_the_library_exist(name):
    assert resolve(name) is not None


def test_peers_say_what_we_do_ourselves():
    rows = peer_rows()
    said = rows.pop(OURS)
    for cell in said.values():
        for name in re.findall(r"`([\w.]+)`", cell):
            assert callable(resolve(name)), name
    # The columns are those in which something is claimed here, so no cell of ours is a dash.
    assert "–" not in said.values()
    for name in ("plugin.empirical_privacy", "local_privacy.mpl"):
        assert any(name in cell for row in rows.values() for cell in row.values())
        assert callable(resolve(name))
    assert set(PEERS) <= set(rows)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::edp_bayes.EdpBayesWarning")  # 200 draws are few
def test_bands_are_two_sided_and_a_black_box_needs_outputs_alone():
    rng = np.random.default_rng(1)
    outputs = [rng.laplace(side, 1.0, 2000) for side in (0.0, 1.0)]
    found = edp.audit_mechanism(
        *outputs, epsilon=[0.2, 0.5], draws=200, random_seed=1, progressbar=False
    )
    band = found.band("delta", prob=0.9)
    assert (band["lower"] > 0).all()
    assert (band["upper"] < 1).all()
    low, high = found.local_epsilon_interval(0.9)
    # The truth is 1; how often intervals hold it is not for one data set to say.
    assert 0.9 < high < np.inf
    assert 0.0 < low < 1.1


@pytest.mark.full
def test_known_distributions_have_an_exact_curve():
    p, q = (edp.Mixture(1.0, location, 1.0, kernel="laplace") for location in (0.0, 1.0))
    epsilon = np.array([0.0, 0.3, 0.9])
    exact = -np.expm1((epsilon - 1.0) / 2)
    np.testing.assert_allclose(edp.hockey_stick(p, q, epsilon=epsilon), exact, rtol=1e-12)


@pytest.mark.parametrize(
    ("peer", "name", "module"), [(p, n, m) for p, names in PEERS.items() for n, m in names.items()]
)
def test_names_of_peers_exist(peer, name, module):
    assert f"`{name}`" in " ".join(peer_rows()[peer].values())
    assert callable(getattr(pytest.importorskip(module), name))


def test_dp_accounting_rounds_up_or_down():
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    asked = inspect.signature(pld.from_two_probability_mass_functions).parameters
    assert "pessimistic_estimate" in asked
