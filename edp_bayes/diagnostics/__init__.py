"""Checks that say whether a result can be relied on.

`check_databases` asks of the data what the method demands: databases that are independent draws
of one distribution, none of them the work of one individual. `check_draws` asks whether the draws
of a privacy quantity have converged. `posterior_predictive_check` asks whether the density model
could have produced the responses, `check_detail` whether it is too smooth. `check_individuals`
compares the risk with what the own contributions of every individual say. `check_grid` looks for
those who break a grid on which the answers lie without them, `check_identifier` whether individuals
are persons or records.
`check_atoms` looks for a value that answers have again and again without an individual,
`check_newcomers` asks what newcomers would risk if they stayed. `check_slopes` asks whether a model
allows for the errors of slopes, `check_scale` advises another scale for strongly skewed answers.
`prior_sensitivity` asks how far the result follows the prior.
"""

from edp_bayes.diagnostics.checks import Check, Checks
from edp_bayes.diagnostics.convergence import DrawChecks, check_draws
from edp_bayes.diagnostics.detail import check_detail
from edp_bayes.diagnostics.grids import check_grid
from edp_bayes.diagnostics.identifiers import check_identifier
from edp_bayes.diagnostics.independence import DatabaseChecks, check_databases
from edp_bayes.diagnostics.individuals import check_individuals
from edp_bayes.diagnostics.newcomers import check_newcomers
from edp_bayes.diagnostics.predictive import (
    MIN_REPLICATES,
    PredictiveChecks,
    posterior_predictive_check,
)
from edp_bayes.diagnostics.scales import check_scale
from edp_bayes.diagnostics.sensitivity import prior_sensitivity
from edp_bayes.diagnostics.single_values import check_atoms
from edp_bayes.diagnostics.slopes import check_slopes
from edp_bayes.results.effects import withheld

__all__ = [
    "MIN_REPLICATES",
    "Check",
    "Checks",
    "DatabaseChecks",
    "DrawChecks",
    "PredictiveChecks",
    "check_atoms",
    "check_databases",
    "check_detail",
    "check_draws",
    "check_grid",
    "check_identifier",
    "check_individuals",
    "check_newcomers",
    "check_scale",
    "check_slopes",
    "posterior_predictive_check",
    "prior_sensitivity",
    "withheld",
]
