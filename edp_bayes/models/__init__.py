"""Density models: the distribution of the response, coupled to those without each individual."""

from edp_bayes.models.base import DensityModel, FittedModel
from edp_bayes.models.base_measure import BaseMeasure
from edp_bayes.models.contributions import CONTRIBUTIONS
from edp_bayes.models.coupled import CoupledMixture
from edp_bayes.models.custom import PyMCMixture
from edp_bayes.models.dirichlet_process import DirichletProcessMixture
from edp_bayes.models.finite_mixture import FiniteMixture
from edp_bayes.models.full_posterior import FullPosterior
from edp_bayes.models.sampling import SamplerSettings
from edp_bayes.models.smoothed_bootstrap import SmoothedBootstrap
from edp_bayes.models.stacking import Stacked

__all__ = [
    "CONTRIBUTIONS",
    "BaseMeasure",
    "CoupledMixture",
    "DensityModel",
    "DirichletProcessMixture",
    "FiniteMixture",
    "FittedModel",
    "FullPosterior",
    "PyMCMixture",
    "SamplerSettings",
    "SmoothedBootstrap",
    "Stacked",
]
