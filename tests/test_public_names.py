"""The public names of every public module: a change here is a change for users."""

import importlib
import inspect

import pytest

PUBLIC = {
    "edp_bayes": """
        Adversary Attack Audit Cells ComposedAudit Databases DirichletProcessMixture
        EdpBayesError EdpBayesWarning ExecutorError FiniteMixture FullPosterior GaussianNoise
        InputTypeError InvalidInputError JointAudit JointResponses LaplaceNoise Leakage
        MechanismAudit Mixture NormalMixture PropertyAudit Published PyMCMixture Release Responses
        SamplingError SmoothedBootstrap Stacked Target Tried Verdict __version__ attack audit
        audit_cells audit_mechanism audit_mechanisms audit_property audit_trace compare compose data
        diagnostics disclosure epsilon_from_membership guarantee hockey_stick interval leakage
        load local_privacy
        mechanism_guarantee mechanisms models noise plan plots plugin property_audit queries
        released releases_until remedies report smallest_delta statistical_privacy
    """,
    "edp_bayes.auditing.ideal": "smallest_delta",
    "edp_bayes.auditing.leakage": "Leakage leakage",
    "edp_bayes.auditing.planning": "Plan plan",
    "edp_bayes.auditing.trace": "audit_trace",
    "edp_bayes.black_box.auditing": "audit_mechanism audit_mechanisms",
    "edp_bayes.black_box.guarantee": "mechanism_guarantee",
    "edp_bayes.black_box.membership": "MembershipEpsilon epsilon_from_membership",
    "edp_bayes.data": "load_cdnow load_cdnow_weeks",
    "edp_bayes.diagnostics": """
        Check Checks DatabaseChecks DrawChecks MIN_REPLICATES PredictiveChecks check_atoms
        check_databases check_detail check_draws check_grid check_identifier check_individuals
        check_newcomers check_scale check_slopes
        posterior_predictive_check prior_sensitivity withheld
    """,
    "edp_bayes.interval": """
        answer_from_data answer_from_mixture answer_from_release count_curves epsilon iso_curves
        level_curves level_from_epsilon posterior width_curves width_from_epsilon
    """,
    "edp_bayes.mechanisms": """
        DiscreteMechanism ExponentialMechanism Gaussian Geometric Laplace Mechanism NoisyHistogram
        NoisyMaxIndex NoisyMaxValue NumericalSparseVector OneTimeRappor PrefixSum
        RandomizedResponse Rappor RestrictedLaplace SparseVector SparseVectorWithAnswers
        TruncatedGeometric suite
    """,
    "edp_bayes.models": """
        BaseMeasure CONTRIBUTIONS CoupledMixture DensityModel DirichletProcessMixture FiniteMixture
        FittedModel FullPosterior PyMCMixture SamplerSettings SmoothedBootstrap Stacked
    """,
    "edp_bayes.noise": """
        FixedBandwidth GaussianNoise LaplaceNoise LatticeNoise NoNoise NoiseDistribution Tradeoff
        Verification calibrate release tradeoff verify
    """,
    "edp_bayes.plots": """
        plot_count_curves plot_delta plot_density plot_individuals plot_interval_level
        plot_iso_curves plot_leakage plot_level_curves plot_membership plot_past plot_power
        plot_total_risk plot_width_curves
    """,
    "edp_bayes.plots.breutigam_reischuk": """
        gain_by_scale mechanisms_by_probability mechanisms_by_rate noise_by_probability
        sample_and_small_database
    """,
    "edp_bayes.plots.statistical_privacy": """
        curves_by_probability delta_by_probability delta_by_size equal_utility gaussian_noise
        laplace_noise subsampling utility_and_privacy
    """,
    "edp_bayes.plots.style": "context label_lines plain_ticks",
    "edp_bayes.plugin": """
        BootstrapBand EmpiricalPrivacy bootstrap bottleneck_epsilon empirical_privacy
        hausdorff_epsilon local_privacy
    """,
    "edp_bayes.plugin.local_privacy": "MplEstimate mpl",
    "edp_bayes.property_audit": """
        BetaBinomialModel BinomialModel PropertyCounts PyMCProbabilities audit_property
    """,
    "edp_bayes.queries": "Count Mean Proportion Quantile Query Slope Sum Variance parse",
    "edp_bayes.report": "describe pseudonym_table write_cells write_report",
    "edp_bayes.results.bands": "KINDS band fewest_draws pointwise simultaneous upper_limit",
    "edp_bayes.statistical_privacy": """
        GaussianNoise LaplaceNoise MechanismChoice PrivacyLoss PropertyQuery SamplingWithReplacement
        Subsampling beta_binomial_delta delta delta_minus delta_plus differential_privacy_delta
        epsilon_at group_delta inference_loss laplace_epsilon least_utility_loss matching_rate
        matching_scale mixture_delta normal_approximation privacy_loss subsampling_bound
        utility_loss
    """,
}


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_these(module):
    found = importlib.import_module(module)
    assert sorted(found.__all__) == sorted(PUBLIC[module].split())
    assert all(hasattr(found, name) for name in found.__all__)


def _functions(module):
    for name in module.__all__:
        found = getattr(module, name)
        members = vars(found).values() if inspect.isclass(found) else [found]
        yield from (f for f in (getattr(m, "__func__", m) for m in members) if callable(f))


@pytest.mark.parametrize("module", PUBLIC)
def test_epsilon_is_given_by_name(module):
    for function in _functions(importlib.import_module(module)):
        if not inspect.isfunction(function) or function.__name__ == "__init__":
            continue
        epsilon = inspect.signature(function).parameters.get("epsilon")
        assert epsilon is None or epsilon.kind is epsilon.KEYWORD_ONLY, function.__qualname__
