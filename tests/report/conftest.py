"""Results to report on, and a browser to look at the reports."""

import shutil
import subprocess
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from report_cases import HOSTILE, small_audit, small_responses

import edp_bayes as edp


@pytest.fixture(scope="session")
def audit():
    return small_audit(small_responses(), individuals=HOSTILE[8:11])


@pytest.fixture(scope="session")
def large_audit():
    """A hundred thousand individuals, each in one or two of 30 databases."""
    rng = np.random.default_rng(5)
    m, n = 100_000, 30
    places = (rng.integers(0, n, 2 * m), np.repeat(np.arange(m), 2))
    c = sp.csc_array((rng.pareto(2.5, 2 * m) + 0.1, places), shape=(n, m))
    response = np.asarray(c.sum(axis=1)).ravel() + rng.normal(0.0, 800.0, n)
    labels = [f"customer {k}" for k in range(m)]
    responses = edp.Responses.from_arrays(response, contribution=c, individual=labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return edp.audit(
            responses,
            epsilon=[0.001, 0.01, 0.1],
            model=edp.SmoothedBootstrap(),
            draws=40,
            chains=1,
            random_seed=1,
            progressbar=False,
        )


@pytest.fixture(scope="session")
def browser():
    """Debian's chromium without a screen; nothing is downloaded."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=driver, log_output=subprocess.DEVNULL)
    window = webdriver.Chrome(options=options, service=service)
    yield window
    window.quit()
