"""Render the content of a report into one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import math
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edp_bayes.characters import clean
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.report import figures
from edp_bayes.report.content import Content, Curve
from edp_bayes.report.describing import describe
from edp_bayes.utils import files, formatting

if TYPE_CHECKING:
    import jinja2
    import pandas as pd

    from edp_bayes.results.base import PrivacyCurves
    from edp_bayes.statistical_privacy.property_query import PropertyQuery

__all__ = ["page", "render", "require_html", "write_report"]

SUFFIXES = (".html", ".htm", "")
PRINTED_ROWS = 50
LARGE = 700.0


def write_report(
    result: PrivacyCurves | PropertyQuery,
    path: str | Path,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    prob: float | None = None,
    names: bool = False,
    key: bytes | str | None = None,
    noise: Any = (),
    title: str | None = None,
    releases: PrivacyCurves | None = None,
    rules: pd.DataFrame | None = None,
) -> Path:
    """Write a report on a result: one HTML file, which needs no network.

    Parameters
    ----------
    result : Audit, MechanismAudit, PropertyAudit or PropertyQuery
        What to report.
    path : str or Path
        The file, complete or not written at all.
    epsilon, delta : float, optional
        The target that the verdict answers, by default that of `PrivacyCurves.verdict`. The reader
        can move epsilon: other limits in the report are of the whole curve.
    prob : float, optional
        Probability of every limit, band and interval; 0.95 if not given.
    names : bool
        Show the names of individuals, and what they contribute to the last digit. Otherwise each
        has a pseudonym that is the same in every report with the same key.
    key : bytes or str, optional
        Secret of at least 16 bytes for the pseudonyms; derived from the data if not given. See
        `edp_bayes.report.pseudonym_table`.
    noise : NoiseDistribution or a sequence of them, optional
        What `edp_bayes.noise.calibrate` found, to be shown.
    title : str, optional
        Heading of the report; by default that of the release (`with_release`), or of the query.
    releases : ComposedAudit, optional
        Several releases of the same query together, for the first page's row of linkability.
    rules : DataFrame, optional
        What `edp_bayes.disclosure` returned of the answers, to be shown beside delta.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputTypeError
        If the result is none of these, or the key, a noise or the rules are of another type.
    InvalidInputError
        If the result is a verification, epsilon lies outside of the grid, the probability is none,
        the key is too short, the name ends as that of another format or the file cannot be written.

    See Also
    --------
    describe : what a report says, as text
    write_cells : one file on the cells of a table
    edp_bayes.Audit.report : a report from the result itself
    edp_bayes.Release : what was released, in words

    Examples
    --------
    >>> import tempfile
    >>> from edp_bayes.statistical_privacy import PropertyQuery
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_report(PropertyQuery(1000, 0.1), Path(folder) / "report.html")
    ...     "<!doctype html>" in path.read_text(encoding="utf-8")
    True
    """
    target = require_html(path)
    content = describe(
        result,
        epsilon=epsilon,
        delta=delta,
        prob=prob,
        names=names,
        key=key,
        noise=noise,
        title=title,
        releases=releases,
        rules=rules,
    )
    with files.replaced(target, private=names) as temporary:
        temporary.write_text(render(content), encoding="utf-8", newline="\n")
    return target


def require_html(path: str | Path) -> Path:
    """Return the path of a report, whose name must be that of a page.

    Raises
    ------
    InvalidInputError
        If it ends as that of another format.
    """
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise InvalidInputError(
            f"a report is a page of HTML: its name must end in .html, found {target.name}"
        )
    return target


def page(template: str, **values: Any) -> str:
    """Return a page as text.

    Every text passes `clean` and Jinja's escaping; the page's own script and style are
    the only ones that its content security policy lets run.
    """
    environment = _environment()
    style, script = (_source(environment, name) for name in ("style.css", "script.js"))
    return environment.get_template(template).render(
        style=style,
        script=script,
        style_hash=_hash(style),
        script_hash=_hash(script),
        **values,
    )


def render(content: Content) -> str:
    """Return the page of a result as text."""
    at = content.epsilon[content.at]
    return page(
        "report.html",
        content=content,
        values=_values(content),
        privacy=figures.privacy_figures(content),
        total=figures.total_figure(content),
        distributions=[
            (distributions.name, figures.distribution_figures(distributions, k, content.prob, at))
            for k, distributions in enumerate(content.distributions)
        ],
        seen=figures.seen_figures(content),
        rest=figures.histogram(content.people.rest) if content.people else None,
        printed_rows=PRINTED_ROWS,
        largest=_largest(content),
    )


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("edp_bayes.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    environment.filters |= {
        name: getattr(formatting, name) for name in ("number", "percent", "risk", "short")
    }
    return environment


def _visible(value: Any) -> Any:
    """Return text with every character visible; what is HTML already, and no text, as it is."""
    return clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _source(environment: jinja2.Environment, name: str) -> str:
    """Return a file as it is: braces in style and script are no template."""
    assert environment.loader is not None
    return environment.loader.get_source(environment, name)[0].strip()


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _values(content: Content) -> dict[str, list[str]]:
    """Return what changes with epsilon, in words: the script only looks it up."""
    exact = content.exact_zeros
    values = {
        "epsilon": [f"{e:.4g}" for e in content.epsilon],
        "growth": [
            formatting.number(math.exp(e) if e < LARGE else math.inf) for e in content.epsilon
        ],
        **_worded("delta", content.curve, exact=exact),
    }
    if content.claims:
        values["claim"] = list(content.claims)
    if content.basis:
        values["basis"] = list(content.basis)
    if content.total is not None:
        values |= _worded("total", content.total.curve, exact=exact)
        values["bound"] = [formatting.risk_limit(v, exact=exact) for v in content.total.bound]
    if content.enough is not None:
        spread = content.enough.spread
        values["scale"] = [formatting.number(scale, 3) for scale in content.enough.scale]
        values["relative"] = [
            formatting.number(math.sqrt(2.0) * scale / spread, 3) for scale in content.enough.scale
        ]
    return values


def _worded(name: str, curve: Curve, *, exact: bool) -> dict[str, list[str]]:
    """Return a curve and its bands in words, the median also as it stands in a sentence."""
    columns = {name: curve.median}
    for kind, band in (("simultaneous", curve.simultaneous), ("pointwise", curve.pointwise)):
        if band is not None:
            columns |= {f"{name}_{kind}_lower": band.lower, f"{name}_{kind}_upper": band.upper}
    said = {f"{name}_said": [formatting.about(value, exact=exact) for value in curve.median]}
    return said | {
        column: [formatting.risk(value, exact=exact) for value in values]
        for column, values in columns.items()
    }


def _largest(content: Content) -> float:
    """Return the top of the scale of the intervals in the table."""
    if content.people is None:
        return 1.0
    tops = [row.interval[2] if row.interval else row.median for row in content.people.rows]
    return max([*tops, 1e-12])
