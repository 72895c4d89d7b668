"""Results to report on, shared by the tests."""

import warnings

import numpy as np
import scipy.sparse as sp

import edp_bayes as edp
from edp_bayes.property_audit.models import ProbabilityDraws

EPSILON = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.8])
# Whatever a table of customers may hold.
HOSTILE = (
    "Anna Meier",
    "<script>window.pwned = 1</script>",
    '"><img src=x onerror="window.pwned = 1">',
    'O\'Brien & "Sons"',
    "two\nlines\r\nthree",
    "‮drawkcab",
    "שלום עולם",
    "</script></style></table><b>bold</b>",
    "{{ 7 * 7 }}{% raw %}",
    "nul\x00 and bell\x07",
    "half a pair \ud800",
    "long " + "x" * 5000,
)


def small_responses(labels=HOSTILE):
    rng = np.random.default_rng(3)
    c = rng.gamma(2.0, 0.05, (40, len(labels)))
    c[:, 0] *= 8.0  # dominates, so that a check names it
    response = 40.0 + 6.0 * rng.standard_normal(40) + c.sum(axis=1)
    return edp.Responses.from_arrays(
        response, contribution=sp.csc_array(c), individual=list(labels), query="sum:<b>kWh</b>"
    )


def small_audit(responses, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", edp.EdpBayesWarning)
        return edp.audit(
            responses,
            model=edp.SmoothedBootstrap(),
            **{
                "epsilon": EPSILON,
                "draws": 150,
                "chains": 2,
                "keep": 4,
                "random_seed": 4,
                **options,
            },
            progressbar=False,
        )


class Unpooled:
    """Every property by itself, with Jeffreys' prior: drawn exactly and at once."""

    dependent = False

    def fit(self, counts, settings):
        rng = np.random.default_rng(settings.random_seed)
        count, n = counts.count.sum(axis=0), counts.n.sum()
        shape = (settings.chains, settings.draws, counts.n_properties)
        prob = rng.beta(0.5 + count, 0.5 + n - count, shape)
        return ProbabilityDraws.of(counts, prob, None, attributes={"model": "Unpooled()"})


PROPERTIES = {"smoker": 310, "<b>rare</b> & hidden": 4, "of right\nto left \u202eage": 130}


def several_properties():
    return edp.audit_property(
        PROPERTIES, 1000, epsilon=EPSILON, model=Unpooled(), random_seed=1, progressbar=False
    )


def several_pairs():
    """Randomised response, and one database whose neighbour never answers True."""

    def respond(share, size, rng):
        return rng.random(size) < share

    pairs = [(0.75, 0.25), (0.5, 0.45), (0.05, 0.0)]
    return edp.audit_mechanisms(
        respond, pairs, epsilon=EPSILON, size=1000, draws=250, random_seed=1, progressbar=False
    )
