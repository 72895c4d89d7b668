"""`edp-bayes audit --resume`, killed and continued, and `--executor`."""

import os
import signal
import time

import numpy as np
import pandas as pd
import pytest

import edp_bayes as edp
from edp_bayes.cli import main
from tests.command_line import refused
from tests.test_cli import FILES, launch


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rng = np.random.default_rng(3)
    n, m = 20, 300
    keys = pd.MultiIndex.from_product([range(n), range(m)], names=["week", "customer"]).to_frame()
    keys["spent"] = rng.gamma(2.0, 1.0, n * m)
    path = tmp_path_factory.mktemp("table") / "shop.csv"
    keys[rng.random(n * m) < 0.2].to_csv(path, index=False)
    return path


def arguments(table, out, *more):
    given = "--database week --individual customer --query sum:spent --epsilon 0.02,0.3 --no-past"
    numbers = "--model finite:2 --draws 40 --tune 40 --chains 2 --seed 1 --quiet"
    return [
        "audit",
        str(table),
        "--verbose",
        *given.split(),
        *numbers.split(),
        "--out",
        str(out),
        *more,
    ]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("whole")


@pytest.fixture(scope="module")
def uninterrupted(table, out):
    assert main(arguments(table, out, "--executor", "2", "--resume", "--keep-store")) == 0
    return edp.load(out / "audit.nc")


MOMENTS = {
    "evaluating": lambda out: len(list(out.glob("audit.store/block-*.npz"))) > 0,
    "writing results": lambda out: (out / "summary.csv").exists(),
}


@pytest.mark.full
@pytest.mark.parametrize("there", MOMENTS.values(), ids=MOMENTS)
def test_a_killed_run_is_resumed_and_leaves_no_store(there, table, tmp_path, uninterrupted, capsys):
    running = launch(*arguments(table, tmp_path, "--resume"))
    while running.poll() is None and not there(tmp_path):
        time.sleep(0.002)
    os.kill(running.pid, signal.SIGKILL)
    running.communicate()
    assert list(tmp_path.glob("audit.store/block-*.npz"))
    assert main([w for w in arguments(table, tmp_path, "--resume") if w != "--quiet"]) == 0
    assert "blocks of individuals are finished" in " ".join(capsys.readouterr().out.split())
    found = edp.load(tmp_path / "audit.nc")
    for name in ("delta", "total_risk", "total_risk_bound", "individual_delta"):
        assert getattr(found, name).equals(getattr(uninterrupted, name))
    assert {path.name for path in tmp_path.iterdir()} == FILES


def test_a_store_that_is_kept_is_refused_to_other_settings(table, out, uninterrupted, capsys):
    assert (out / "audit.store" / "settings.json").exists()
    words = arguments(table, out, "--resume")
    words[words.index("0.02,0.3")] = "0.02,0.4"
    assert "is of another audit: epsilon is [0.02, 0.3] there" in refused(capsys, *words)
    words = arguments(table, out, "--resume", "--exact-up-to", "5")
    assert "another audit: exact_up_to is 20000 there and 5 here" in refused(capsys, *words)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--keep-store"], "--keep-store is for a store: give --resume, too"),
        (["--executor", "0"], "executor must be at least 1, found 0"),
    ],
)
def test_what_makes_no_sense_is_one_line(more, message, table, tmp_path, capsys):
    assert message in refused(capsys, *arguments(table, tmp_path, *more))
