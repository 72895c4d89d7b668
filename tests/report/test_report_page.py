"""The page as a reader meets it, in a real browser."""

import base64
import math
import re
import shutil
import subprocess
import time
from html.parser import HTMLParser

import numpy as np
import pytest
from report_cases import (
    EPSILON,
    HOSTILE,
    PROPERTIES,
    several_pairs,
    several_properties,
    small_audit,
    small_responses,
)

import edp_bayes as edp
from edp_bayes.black_box.auditing import audit_mechanism
from edp_bayes.characters import clean
from edp_bayes.report import describe, write_report
from edp_bayes.results.tried import Remedy, Tried
from edp_bayes.statistical_privacy import PropertyQuery
from edp_bayes.utils.formatting import at_most, risk, risk_limit, short


class Elements(HTMLParser):
    """Counts of elements, and whatever a page would load from elsewhere."""

    def __init__(self):
        super().__init__()
        self.tags, self.loads = [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        links = [value for name, value in attributes if name in ("src", "href", "action", "data")]
        self.loads += [value for value in links if not value.startswith("#")]


@pytest.fixture(scope="module")
def page(audit, tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    assert write_report(audit, path, prob=0.95, names=True, epsilon=0.05) == path
    return path


@pytest.fixture
def opened(browser, page):
    look(browser, "light")
    browser.get(page.as_uri())
    return browser


def look(browser, scheme="light", *, width=1000, phone=False, medium=""):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features, "media": medium})
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": phone},
    )


def find(browser, selector):
    return browser.find_element("css selector", selector)


def text(browser, selector):
    return browser.execute_script(
        "return document.querySelector(arguments[0]).textContent.replace(/\\s+/g, ' ').trim()",
        selector,
    )


def numbers_at(audit, name, k):
    band = audit.band(name, prob=0.95).isel(epsilon=k)
    exact = audit.exact_zeros
    return [risk(float(band[end]), exact=exact) for end in ("median", "lower", "upper")]


@pytest.mark.full
def test_nothing_is_loaded_from_elsewhere_and_names_are_no_markup(page):
    seen = Elements()
    seen.feed(page.read_text(encoding="utf-8"))
    assert seen.loads == []
    assert seen.tags.count("script") == 2
    assert seen.tags.count("style") == 1
    assert "img" not in seen.tags
    assert "b" not in seen.tags


@pytest.mark.full
def test_without_a_wish_no_name_is_in_the_file(audit, tmp_path):
    written = write_report(audit, tmp_path / "report.html").read_text(encoding="utf-8")
    for part in ("Anna", "pwned", "Brien", "drawkcab", "עולם", "bold", "raw %", "xxxxx", "half a"):
        assert part not in written
    assert re.search(r"Without individual P-\w{5}-\w{5} the response", written)


@pytest.mark.full
def test_the_same_audit_gives_the_same_file(audit, tmp_path):
    one, other = (write_report(audit, tmp_path / name).read_bytes() for name in ("a", "b"))
    assert one == other


def test_a_name_of_another_format_is_refused(audit, tmp_path):
    with pytest.raises(edp.InvalidInputError, match=r"must end in .html, found report.pdf"):
        write_report(audit, tmp_path / "report.pdf")
    assert not any(tmp_path.iterdir())


@pytest.mark.full
def test_a_file_that_cannot_be_written_is_refused(audit, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(edp.InvalidInputError, match="cannot be written"):
        write_report(audit, tmp_path / "file" / "report.html")


def test_hostile_names_are_shown_and_do_nothing(opened):
    names = opened.execute_script(
        "return [...document.querySelectorAll('#people th bdi')].map((one) => one.textContent)"
    )
    assert sorted(names) == sorted(clean(short(name)) for name in HOSTILE)
    assert opened.execute_script("return typeof window.pwned") == "undefined"
    assert find(opened, "h1").text == "Privacy of the query sum:<b>kWh</b>"
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0
    assert [one for one in opened.get_log("browser") if one["level"] == "SEVERE"] == []
    # A name from right to left leaves the rest of its row in place.
    left = opened.execute_script(
        "return [...document.querySelectorAll('#people tbody tr')]"
        ".map((row) => row.children[1].getBoundingClientRect().left)"
    )
    assert len(set(left)) == 1


def test_the_verdict_and_the_slider(opened, audit):
    from selenium.webdriver.common.keys import Keys

    sentence = (
        "At ε = {} the largest risk of any of 12 individuals is {}, "
        "with 95% probability; its median is {}."
    )
    total = "has the median δ* = {}, and lies with 95% probability between {} and {}"
    slider = find(opened, "#epsilon-slider")
    cursors = []
    for key, k in ((None, 1), (Keys.ARROW_RIGHT, 2), (Keys.END, 5), (Keys.HOME, 0)):
        if key:
            slider.send_keys(key)
        limit = at_most(
            float(audit.upper("delta", kind="simultaneous")[k]),
            exact=audit.exact_zeros,
            resting="resting on the Laplace kernels of the model",
        )
        expected = sentence.format(f"{EPSILON[k]:.4g}", limit, numbers_at(audit, "delta", k)[0])
        assert text(opened, "#sentence") == expected
        assert total.format(*numbers_at(audit, "total_risk", k)) in text(opened, "#total .sentence")
        assert find(opened, "#epsilon-input").get_attribute("value") == f"{EPSILON[k]:.4g}"
        cursors.append(find(opened, "#delta-linear .cursor").get_attribute("transform"))
    assert len(set(cursors)) == 4


def test_a_typed_epsilon_takes_the_value_of_the_grid_below(opened, audit):
    box = find(opened, "#epsilon-input")
    for typed, k, note in (
        ("0.3", 3, "What is said at ε = 0.2 holds at 0.3 too: the risk never rises with ε."),
        ("0.4", 4, ""),
        ("7", 5, "What is said at ε = 0.8 holds at 7 too: the risk never rises with ε."),
    ):
        box.clear()
        box.send_keys(typed)
        assert numbers_at(audit, "delta", k)[0] in text(opened, "#sentence")
        assert text(opened, "#sentence").startswith(f"At ε = {EPSILON[k]:.4g} ")
        assert text(opened, "#epsilon-note") == note
    box.clear()
    box.send_keys("0.01")
    assert text(opened, "#epsilon-note") == "The result says nothing below ε = 0.02."
    assert text(opened, "#sentence").startswith("At ε = 0.8 ")


def test_hovering_reads_the_values_of_both_bands(opened, audit):
    from selenium.webdriver import ActionChains

    drawing = find(opened, "#delta-linear")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", drawing)
    cursor = [float(x) for x in drawing.get_attribute("data-cursor").split()]
    size = drawing.size
    offset = (cursor[4] / 720.0 - 0.5) * size["width"]
    ActionChains(opened).move_to_element_with_offset(drawing, round(offset), 0).perform()
    median, lower, upper = numbers_at(audit, "delta", 4)
    inner = audit.band("delta", kind="pointwise", prob=0.95).isel(epsilon=4)
    low, high = (risk(float(inner[end]), exact=True) for end in ("lower", "upper"))
    assert text(opened, "figure[data-live='delta'] .reading") == (
        f"ε = 0.4: {median}; pointwise {low} to {high}; simultaneous {lower} to {upper}"
    )
    ActionChains(opened).move_to_element(find(opened, "h1")).perform()
    assert text(opened, "figure[data-live='delta'] .reading") == ""


def test_the_axis_becomes_logarithmic_and_the_individual_is_chosen(opened):
    from selenium.webdriver.support.ui import Select

    find(opened, "#curve .log-axis").click()
    assert not find(opened, "#delta-linear").is_displayed()
    assert find(opened, "#delta-log").is_displayed()
    shown = [one.is_displayed() for one in opened.find_elements("css selector", ".distribution")]
    assert shown == [True] + [False] * (len(shown) - 1)
    Select(find(opened, "#distribution")).select_by_index(2)
    shown = [one.is_displayed() for one in opened.find_elements("css selector", ".distribution")]
    assert shown.index(True) == 2
    assert sum(shown) == 1


def test_the_table_is_searched(opened):
    find(opened, "#search").send_keys("o'brien")
    assert text(opened, "#found") == f"1 of {len(HOSTILE)}"
    rows = opened.find_elements("css selector", "#people tbody tr")
    (row,) = [row for row in rows if row.is_displayed()]
    assert row.text.startswith("O'Brien")


@pytest.mark.full
def test_checks_are_told_in_words_not_by_colour_alone(opened, page, audit):
    failed = describe(audit, names=True).failed
    items = [one.text for one in opened.find_elements("css selector", ".checks .bad")]
    assert len(items) == len(failed) > 0
    assert all(item.startswith("✗ failed") for item in items)
    good = [one.text for one in opened.find_elements("css selector", ".checks .good")]
    assert good
    assert all(item.startswith("✓ passed") for item in good)
    assert f"{len(failed)} of {len(items) + len(good)} checks failed" in text(opened, ".status")


CONTRAST = """
const numbers = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (text) => numbers(text).slice(0, 3).map((v) => v / 255)
  .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
const ground = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (numbers(colour)[3] !== 0) return colour;
  }
};
const texts = "h1, p, li, .badge, td, th, a, summary, figcaption .key, .settings td";
return Math.min(...[...document.querySelectorAll(texts)].map((element) => {
  const both = [getComputedStyle(element).color, ground(element)].map(light).sort((a, b) => b - a);
  return (both[0] + 0.05) / (both[1] + 0.05);
}));
"""


def test_dark_and_light_differ_and_both_can_be_read(opened):
    grounds = []
    for scheme in ("light", "dark"):
        look(opened, scheme)
        assert opened.execute_script(CONTRAST) >= 4.5
        grounds.append(
            opened.execute_script("return getComputedStyle(document.body).backgroundColor")
        )
    assert grounds[0] != grounds[1]


INSIDE = """
const scrolled = [...document.querySelectorAll('#page-one, #page-one .scroll')];
return scrolled.map((one) => one.scrollWidth - one.clientWidth)"""


@pytest.mark.parametrize("width", [360, 390])
def test_on_a_phone_nothing_sticks_out(browser, page, width):
    look(browser, width=width, phone=True)
    browser.get(page.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert max(browser.execute_script(INSIDE)) <= 0
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('.drawing:not(.log-version) .tick')]"
        ".map((one) => one.getBoundingClientRect().height).filter((height) => height > 0)"
    )
    assert min(sizes) >= 9.0


def test_on_a_wide_screen_the_page_stands_in_the_middle(browser, page):
    look(browser, width=1400)
    browser.get(page.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 1400
    assert max(browser.execute_script(INSIDE)) <= 0
    left, right, inner = browser.execute_script(
        "const box = document.querySelector('main').getBoundingClientRect();"
        "const whole = document.documentElement.clientWidth;"
        "return [box.left, whole - box.right, box.width]"
    )
    assert abs(left - right) <= 1.0
    assert inner <= 1000.0
    # lines of at most some hundred letters can be read
    widest = browser.execute_script(
        "const letter = parseFloat(getComputedStyle(document.body).fontSize);"
        "return Math.max(...[...document.querySelectorAll('#page-one p, #verdict p')]"
        ".map((one) => one.getBoundingClientRect().width)) / letter"
    )
    assert widest <= 55.0


def printed(browser, path, *, css=True):
    """Print the open page to a file, and return the text of its sheets."""
    if shutil.which("pdftotext") is None or shutil.which("pdfinfo") is None:
        pytest.skip("no pdftotext and pdfinfo: apt-get install poppler-utils")
    options = {"printBackground": True, "preferCSSPageSize": css}
    sheet = browser.execute_cdp_cmd("Page.printToPDF", options)
    path.write_bytes(base64.b64decode(sheet["data"]))
    run = {"capture_output": True, "text": True, "check": True}
    said = subprocess.run(["pdftotext", path, "-"], **run).stdout
    count = int(
        re.search(r"^Pages: +(\d+)$", subprocess.run(["pdfinfo", path], **run).stdout, re.M)[1]
    )
    sheets = [" ".join(one.split()) for one in said.split("\f")[:count]]
    assert len(sheets) == count
    return sheets


def assert_page_one_is_one_sheet(browser, path, *, css=True):
    first, second, *_ = printed(browser, path, css=css)
    words = browser.execute_script("return document.querySelector('#page-one').innerText").split()
    assert len(words) > 100
    # everything of it is on the first sheet, from its claim to its last sentence
    assert "This page is evidence for a decision, not the decision." in first
    missing = [word for word in dict.fromkeys(words) if word not in first]
    assert missing == []
    assert second.startswith("Verdict")


@pytest.mark.parametrize("css", [True, False], ids=["A4", "letter"])
def test_page_one_is_one_printed_sheet(opened, tmp_path, css):
    assert_page_one_is_one_sheet(opened, tmp_path / "report.pdf", css=css)


@pytest.fixture(scope="module")
def full_page(tmp_path_factory):
    """A report whose first page holds all that it may: long words, releases, what was tried."""
    rng = np.random.default_rng(6)
    n, people = 65, 30
    contribution = rng.gamma(2.0, 0.1, (n, people)) * (rng.random((n, people)) < 0.4)
    season = 3.0 * np.sin(2.0 * np.pi * np.arange(n) / 13.0)
    responses = edp.Responses.from_arrays(
        100.0 + season + rng.normal(size=n) + contribution.sum(axis=1),
        contribution=contribution,
        query="sum:amount",
        additive=True,
    )
    adversary = edp.Adversary(past=3, trend=True, season=13)
    audit = edp.audit(
        responses, epsilon=[0.05, 0.1], adversary=adversary, draws=50, random_seed=1,
        progressbar=False,
    ).with_release(
        title="Weekly revenue of all shops of the region",
        unit="dollars",
        period="January 1997 to June 1998",
        publisher="Department of statistics of the region",
        audience="subscribers of the weekly bulletin",
        prepared_by="A. Auditor, office of data protection",
        next_review="May 2027",
    )  # fmt: skip
    verdict = audit.verdict()
    tried = Tried(
        tuple(
            Remedy(kind, what, verdict, moves, n)
            for kind, what, moves in (
                ("rounding", "rounding to 5", 0.42),
                ("noise", "Gaussian noise of standard deviation 10.5", 3.0),
                ("period", "4 databases in one", math.nan),
                ("limit", "nobody counts for more than 0.55", 0.21),
            )
        ),
        verdict.target,
        0.95,
        n,
    )
    audit = audit.with_tried(tried)
    year = audit.compose(databases=52, progressbar=False)
    path = tmp_path_factory.mktemp("full") / "report.html"
    rules = edp.disclosure(responses, audit=audit)
    return write_report(audit, path, releases=year, rules=rules)


@pytest.mark.full
def test_a_full_page_one_is_one_printed_sheet(browser, full_page, tmp_path):
    look(browser)
    browser.get(full_page.as_uri())
    assert "4 databases in one leaves the target" in text(browser, "#page-one")
    for css in (True, False):
        assert_page_one_is_one_sheet(browser, tmp_path / "report.pdf", css=css)
    for width, phone in ((1400, False), (390, True)):
        look(browser, width=width, phone=phone)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert max(browser.execute_script(INSIDE)) <= 0


def test_it_prints_in_light_without_controls(opened, tmp_path):
    look(opened, "dark", medium="print")
    assert not find(opened, "#epsilon-slider").is_displayed()
    ground = opened.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert ground == "rgb(255, 255, 255)"
    sheets = printed(opened, tmp_path / "report.pdf", css=False)
    words = " ".join(sheets)
    for part in ("Verdict", "Privacy curve", "Total risk", "Assumptions", "Signature"):
        assert part in words
    assert len(sheets) <= 12


@pytest.mark.full
def test_a_hundred_thousand_individuals_open_at_once(browser, large_audit, tmp_path):
    path = write_report(large_audit, tmp_path / "report.html", epsilon=0.001)
    assert path.stat().st_size < 5_000_000
    look(browser)
    took = []
    for _ in range(3):
        start = time.perf_counter()
        browser.get(path.as_uri())
        browser.execute_script("return document.body.offsetHeight")
        took.append(time.perf_counter() - start)
    assert min(took) < 2.0
    assert len(browser.find_elements("css selector", "#people tbody tr")) == 1000
    assert "The other 99,000 individuals are counted below" in text(browser, "#individuals")
    find(browser, "#search").send_keys("P-0")
    count = int(text(browser, "#found").split()[0])
    assert 0 < count < 1000
    # On paper the table is its beginning.
    look(browser, medium="print")
    shown = browser.execute_script(
        "return [...document.querySelectorAll('#people tbody tr')]"
        ".filter((row) => row.offsetParent !== null).length"
    )
    assert shown <= 50


@pytest.mark.full
def test_without_individuals_the_other_sections_remain(browser, tmp_path):
    rng = np.random.default_rng(1)
    samples = [rng.random(2000) < share for share in (0.75, 0.25)]
    result = audit_mechanism(*samples, epsilon=[0.5, 1.0], random_seed=1, progressbar=False)
    look(browser)
    browser.get(write_report(result, tmp_path / "a.html", prob=0.95).as_uri())
    said = "the difference of the outputs of two neighbouring databases is at most "
    assert said in text(browser, "#sentence")
    assert "this pair" in text(browser, "#local")
    browser.get(write_report(PropertyQuery(1000, 0.1), tmp_path / "b.html").as_uri())
    assert "this is computed exactly, so it has no band." in text(browser, "#sentence")
    for missing in ("#individuals", "#total", "#densities", "#noise", "#checks"):
        assert browser.find_elements("css selector", missing) == []
    find(browser, "#epsilon-slider").send_keys("\ue010")  # End
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []


def rows_of(browser, selector):
    return browser.execute_script(
        "return [...document.querySelectorAll(`${arguments[0]} tbody tr`)].map((row) =>"
        " [...row.children].map((cell) => cell.textContent.replace(/\\s+/g, ' ').trim()))",
        selector,
    )


def assert_readable_everywhere(browser):
    """Look at the open page in light and dark, and on a phone."""
    for scheme in ("light", "dark"):
        look(browser, scheme)
        assert browser.execute_script(CONTRAST) >= 4.5
    look(browser, width=360, phone=True)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    look(browser)
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []


@pytest.mark.full
def test_several_properties_stand_in_a_table_by_falling_risk(browser, tmp_path):
    result = several_properties()
    look(browser)
    browser.get(write_report(result, tmp_path / "a.html", prob=0.95, epsilon=0.1).as_uri())
    k = int(np.flatnonzero(EPSILON == 0.1)[0])
    median = numbers_at(result, "delta", k)[0]
    limit = risk_limit(float(result.upper(kind="simultaneous")[k]))
    assert text(browser, "#sentence") == (
        "At ε = 0.1 the risk of the critical entry for the riskiest of 3 properties is "
        f"at most {limit}, with 95% probability; its median is {median}."
    )
    assert text(browser, "h1") == "Privacy of 3 property queries"
    rows = rows_of(browser, "#properties")
    middle = result.property_delta.sel(epsilon=0.1).median(("chain", "draw"))
    expected = sorted(PROPERTIES, key=lambda name: -float(middle.sel(property=name)))
    assert [row[0] for row in rows] == [clean(name) for name in expected]
    shares = result.prob.quantile([0.025, 0.975], ("chain", "draw"))
    for name, row in zip(expected, rows, strict=True):
        assert row[3] == risk(float(middle.sel(property=name)))
        low, high = map(float, row[2].split(" to "))
        np.testing.assert_allclose([low, high], shares.sel(property=name), rtol=0.01)
        assert low < PROPERTIES[name] / 1000 < high
    assert text(browser, "#settings").count("random seed") == 1
    assert_readable_everywhere(browser)


def test_several_pairs_stand_in_a_table_by_falling_epsilon(browser, tmp_path):
    result = several_pairs()
    look(browser)
    path = write_report(result, tmp_path / "a.html", prob=0.95, epsilon=0.2)
    browser.get(path.as_uri())
    worst = "neighbouring databases for the worst of 3 pairs is at most "
    assert worst in text(browser, "#sentence")
    rows = rows_of(browser, "#local")
    assert [row[0] for row in rows] == ["worst pair", "pair 2", "pair 0", "pair 1"]
    # Nothing excludes that the neighbour of the last pair never gives one of the outcomes.
    infinite = float(np.isinf(result.pair_local_epsilon.isel(pair=2)).mean())
    assert rows[1][3] == risk(infinite, exact=True)
    assert rows[1][2].endswith("to infinite")
    low, high = map(float, rows[2][2].split(" to "))
    assert low < np.log(3.0) < high
    assert "worst pair of databases" in text(browser, "#curve")
    assert "infinity" not in text(browser, "main").lower().replace("infinite", "")
    assert "nan" not in re.split(r"[^a-z]+", text(browser, "main").lower())
    assert_readable_everywhere(browser)


def test_how_far_answers_spread_is_that_of_the_audit(opened, audit):
    rows = rows_of(opened, "#intervals")
    assert [float(row[0]) for row in rows] == [0.05, 0.1, 0.2]
    level = audit.interval_level([0.05, 0.1, 0.2])
    for k, row in enumerate(rows):
        values = level.isel(width=k).to_numpy()
        assert len(row) == 3, "no second epsilon stands beside that of delta"
        assert float(row[1]) == pytest.approx(np.median(values), rel=0.02)
        low, high = map(float, row[2].split(" to "))
        assert ((values >= 0.99 * low) & (values <= 1.01 * high)).mean() >= 0.95
        assert ((values > 1.01 * low) & (values < 0.99 * high)).mean() <= 0.96


@pytest.mark.full
def test_a_single_epsilon_is_a_report_too(browser, tmp_path):
    audit = small_audit(small_responses(), draws=50, chains=1)
    one = edp.Audit(
        audit.tree.map_over_datasets(
            lambda data: data.isel(epsilon=[2]) if "epsilon" in data.dims else data
        )
    )
    one.tree.attrs = audit.tree.attrs
    look(browser)
    browser.get(write_report(one, tmp_path / "report.html").as_uri())
    assert text(browser, "#sentence").startswith("At ε = 0.1 the largest risk")
    drawn = browser.execute_script("return document.querySelector('main').innerHTML")
    assert not re.search("nan[^a-z]|inf[^ioe]", drawn.lower())
