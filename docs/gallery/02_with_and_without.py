"""
With and without one individual
===============================

The distribution of the weekly revenue of a music shop, with and without the customer at the highest
risk: the CDNOW purchases that come with the package.
"""

import edp_bayes as edp
from edp_bayes.data import load_cdnow_weeks

databases = edp.Databases.from_table(load_cdnow_weeks(), database="week", individual="customer")
audit = edp.audit(
    databases.respond(edp.queries.Sum("dollars")),
    epsilon=[0.05, 0.1],
    model=edp.SmoothedBootstrap(),
    draws=100,
    chains=2,
    random_seed=1,
    progressbar=False,
)
_ = audit.plot_density()
