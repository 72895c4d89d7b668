"""Certified log ratios against densities integrated apart, where the steep places lie far out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.signal import fftconvolve
from scipy.special import logsumexp

import edp_bayes as edp
from edp_bayes.distributions.lattice import LatticeNoise
from edp_bayes.exceptions import InvalidInputError
from edp_bayes.noise import FixedBandwidth, GaussianNoise, LaplaceNoise, NoNoise, verify
from edp_bayes.noise.certificates.kernel_tables import kernel_tables
from edp_bayes.noise.certificates.log_lipschitz import log_lipschitz
from edp_bayes.noise.certificates.ratios import beyond, certified_log_ratios
from edp_bayes.noise.distribution import NoiseDistribution
from edp_bayes.noise.optimal.duality import _dual
from edp_bayes.noise.optimal.program import Constraint
from edp_bayes.noise.posterior import posterior_of


def lattice(half: int, tails: float, *, spacing: float, fall: float, tail_scale: float):
    weights = np.exp(-spacing * np.abs(np.arange(-half, half + 1)) / fall)
    weights *= (1.0 - 2.0 * tails) / weights.sum()
    decay = math.exp(-spacing / tail_scale)
    return LatticeNoise(spacing, weights, left=tails, right=tails, decay=decay)


def log_density(components, x, noise, kernel, reach):
    """Gauss-Legendre over the pieces of the noise's density, in logarithms: nothing underflows."""
    node, weight = np.polynomial.legendre.leggauss(8)
    parts = max(1, math.ceil(2.0 * noise.spacing / components[:, 2].min()))
    h = noise.spacing / parts
    edges = h * np.arange(-math.ceil(reach / h), math.ceil(reach / h))
    y = (edges[:, None] + 0.5 * h * (node + 1.0)).ravel()
    with np.errstate(divide="ignore"):
        mass = np.log(noise.pdf(y)) + np.log(np.tile(0.5 * h * weight, edges.size))
    out = []
    for w, mu, s in components:
        u = (x[:, None] - mu - y) / s
        distribution = -0.5 * u * u - math.log(s * math.sqrt(2.0 * math.pi))
        if kernel == "laplace":
            distribution = -np.abs(u) - math.log(2.0 * s)
        out.append(math.log(w) + logsumexp(distribution + mass, axis=1))
    return logsumexp(out, axis=0)


@pytest.mark.full
@pytest.mark.parametrize(("half", "tails"), [(4, 1e-9), (40, 1e-6), (4, 1e-3), (20, 0.1)])
def test_wide_normal_kernels_are_steepest_where_the_tails_of_the_noise_begin(half, tails):
    noise = lattice(half, tails, spacing=0.05, fall=0.1, tail_scale=1.0)
    x = np.linspace(0.0, 14.0, 1401)
    one = np.array([[1.0, 0.0, 1.0]])
    exact = np.abs(np.diff(log_density(one, x, noise, "gaussian", 30.0))).max() / 0.01
    found = log_lipschitz(NoiseDistribution((noise,)), "gaussian", np.array([1.0]))[0]
    assert exact <= found <= 1.2 * exact


def test_narrow_kernels_are_as_steep_as_the_noise():
    noise = lattice(20, 1e-3, spacing=0.5, fall=2.0, tail_scale=3.0)
    found = log_lipschitz(NoiseDistribution((noise,)), "gaussian", np.array([0.01, 0.001]))
    assert found == pytest.approx([noise.log_lipschitz] * 2)
    x = np.linspace(-15.0, 15.0, 60_001)
    slope = np.abs(np.diff(np.log(noise.pdf(x)))).max() / (x[1] - x[0])
    assert noise.log_lipschitz == pytest.approx(slope, rel=0.01)


@pytest.mark.full
def test_log_ratios_of_wide_kernels_hold_far_out():
    noise = lattice(4, 1e-9, spacing=0.05, fall=0.1, tail_scale=1.0)
    y = np.linspace(-0.01, 0.01, 20)
    data = edp.Responses.from_arrays(y, contribution=np.full((20, 1), 0.06))
    posterior = posterior_of(data, model=FixedBandwidth(1.0, "gaussian"))
    p, q = (part[0] for part in posterior.pair(0))
    x = np.linspace(-12.0, 12.0, 1201)
    distributions = [log_density(part, x, noise, "gaussian", 30.0) for part in (p, q)]
    exact = float(np.abs(distributions[0] - distributions[1]).max())
    for screen in (True, False):
        for epsilon in (0.2, 0.5):
            found = certified_log_ratios(
                posterior, NoiseDistribution((noise,)), epsilon, screen=screen
            )
            assert exact <= found.bound[0, 0] <= 1.1 * exact


def sum_with_laplace(components, x, b):
    u = np.abs(x[:, None] - components[:, 1])
    w, s = components[:, 0], components[:, 2]
    return (0.5 * w * (b * np.exp(-u / b) - s * np.exp(-u / s)) / (b**2 - s**2)).sum(axis=1)


@pytest.mark.parametrize("seed", range(40))
def test_laplace_kernels_of_several_scales_are_bounded_beyond_their_locations(seed):
    rng = np.random.default_rng(seed)
    size, b = int(rng.integers(1, 4)), 3.0
    p = np.stack(
        [rng.dirichlet(np.full(size, 0.5)), rng.normal(0, 0.5, size), rng.uniform(0.2, 2.9, size)],
        axis=-1,
    )
    q = p.copy()
    q[:, 1] -= rng.normal(0.0, 0.1, size)
    q[:, 2] *= rng.uniform(0.9, 1.0, size)
    found = beyond(p[None], q[None], NoiseDistribution((LaplaceNoise(b),)))[0]
    ends = np.concatenate([p[:, 1], q[:, 1]])
    far = np.geomspace(1e-6, 400.0, 4000)
    x = np.concatenate([ends.min() - far, ends.max() + far])
    exact = np.abs(np.log(sum_with_laplace(p, x, b) / sum_with_laplace(q, x, b))).max()
    assert exact <= found * (1.0 + 1e-9)
    assert found <= exact + 0.02


def test_laplace_kernels_of_several_scales_are_not_certified_on_a_lattice():
    noise = NoiseDistribution((lattice(10, 1e-3, spacing=0.5, fall=1.0, tail_scale=3.5),))
    p, q = np.array([[[1.0, 0.0, 3.0]]]), np.array([[[1.0, -0.05, 2.9]]])
    assert beyond(p, q, noise) == [math.inf]
    assert beyond(p, p, noise) == [0.0]


@pytest.mark.full
def test_optimal_noise_for_laplace_kernels_of_several_scales_is_laplace_noise():
    rng = np.random.default_rng(2)
    contribution = rng.gamma(2.0, 0.05, (40, 3))
    y = rng.laplace(10.0, 1.0, 40) + contribution.sum(axis=1)
    data = edp.Responses.from_arrays(y, contribution=contribution)
    model = edp.FiniteMixture(2, kernel="laplace")
    options = {"draws": 10, "tune": 100, "chains": 1, "random_seed": 1, "progressbar": False}
    posterior = posterior_of(data, model=model, **options)
    found = edp.noise.calibrate(posterior, epsilon=0.2, method="optimal")
    least = edp.noise.calibrate(posterior, epsilon=0.2, method="laplace")
    assert found.mean_absolute == least.mean_absolute
    assert found.record["reached"] >= 0.95
    assert found.record["lower_bound"] is None


def test_noise_with_a_wide_gap_has_no_tables():
    weights = np.zeros(121)
    weights[[5, 60, 115]] = 1.0 / 3.0 - 2e-3 / 3.0
    noise = LatticeNoise(0.2, weights, left=1e-3, right=1e-3, decay=math.exp(-0.1))
    assert kernel_tables(noise, 0.3, 1.0, 0.1) is None


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("symmetric", [True, False])
def test_the_dual_bound_is_below_the_dual_function_where_its_cost_has_a_kink(seed, symmetric):
    rng = np.random.default_rng(seed)
    components = [np.array([[1.0, 0.0, 1.0]]), np.array([[1.0, rng.normal(0, 0.05), 1.0]])]
    x = rng.normal(0.0, 2.0, 4)
    constraints = [
        Constraint(0, 0, 1, np.array([v]), np.ones(1), np.empty(0), np.empty(0)) for v in x
    ]
    multipliers = rng.gamma(1.0, 0.5, 4)
    found = _dual(
        constraints, [(components[0], components[1])] * 4, multipliers, kernel="gaussian",
        epsilon=0.05,
        delta=0.0, objective="absolute", symmetric=symmetric, guess=0.01,
    )  # fmt: skip

    def dual(z):
        distributions = [
            np.exp(-0.5 * (x - z - part[0, 1]) ** 2) / math.sqrt(2.0 * math.pi)
            for part in components
        ]
        return abs(z) + float(multipliers @ (distributions[0] - math.exp(0.05) * distributions[1]))

    z = np.concatenate([[0.0], np.linspace(-8.0, 8.0, 801)])
    value = [0.5 * (dual(v) + dual(-v)) if symmetric else dual(v) for v in z]
    assert found.bound <= max(min(value), 0.0) + 1e-12


def _true_log_ratio(source, noise, x):
    """Largest log ratio on a grid of points, from rows of closed form."""
    from edp_bayes.noise.certificates.densities import noise_rows
    from edp_bayes.noise.certificates.smoothing import point_values

    p, q = (noise_rows(part[:1], source.kernel, noise) for part in source.pair(0))
    return float(np.abs(np.log(point_values(p, x[None]) / point_values(q, x[None]))).max())


MIXED = {
    "gaussian": (
        FixedBandwidth(1.0, "gaussian"),
        (np.linspace(-0.5, 0.5, 10), np.full(10, 0.05)),
        NoiseDistribution((GaussianNoise(5.0), LaplaceNoise(0.5)), (0.5, 0.5)),
    ),
    "laplace": (
        FixedBandwidth(0.4, "laplace"),
        (
            np.array([0.8, 1.2, 1.6, 2.1, 2.5, 2.8, 3.8, 3.9]),
            np.array([0.6, 0.1, -0.2, 0.0, 0.0, 0.0, 0.0, 0.1]),
        ),
        NoiseDistribution((LaplaceNoise(0.8), LaplaceNoise(6.0)), (0.999, 0.001)),
    ),
}


@pytest.mark.full
@pytest.mark.parametrize(("model", "data", "noise"), MIXED.values(), ids=MIXED)
def test_log_ratios_of_mixed_noise_are_never_below_the_true_ones(model, data, noise):
    """Far from all locations the ratio of sums of three exponentials has another peak."""
    source = posterior_of(
        edp.Responses.from_arrays(data[0], contribution=data[1][:, None]), model=model
    )
    true = _true_log_ratio(source, noise, np.linspace(-120.0, 120.0, 200_001))
    assert (
        verify(source, noise, epsilon=[0.1, 0.4], progressbar=False).log_ratio[0, 0] >= true > 0.15
    )


def _lattice(spacing, half=6, tail=0.02):
    weights = np.exp(-spacing * np.abs(np.arange(-half, half + 1)) / 1.5)
    weights *= (1.0 - 2.0 * tail) / weights.sum()
    return LatticeNoise(spacing, weights, left=tail, right=tail, decay=math.exp(-spacing / 1.5))


def test_an_atom_beside_a_lattice_is_within_the_error_of_the_quadrature():
    """The peaks that an atom leaves bend between any two points of the quadrature."""
    y = np.linspace(-1.0, 1.0, 8)
    source = posterior_of(
        edp.Responses.from_arrays(y, contribution=np.full((8, 1), 0.4)), model=FixedBandwidth(0.3)
    )
    noise = NoiseDistribution((NoNoise(), _lattice(0.5)), (0.5, 0.5))
    found = verify(source, noise, epsilon=[0.1], progressbar=False)
    step = 1e-3
    x = np.arange(-30_000, 30_001) * step
    kernel = np.exp(-np.abs(x) / 0.3) / 0.6
    smooth = fftconvolve(kernel, noise.pdf(x), "same") * step  # the atom is not in `pdf`
    noisy = 0.5 * kernel + smooth
    p, q = (sum(w * np.interp(x - mu, x, noisy) for w, mu, _ in part[0]) for part in source.pair(0))
    both = [np.maximum(a - math.exp(0.1) * b, 0.0).sum() for a, b in ((p, q), (q, p))]
    true = step * float(max(both))
    assert abs(float(found.delta[0, 0, 0]) - true) <= float(found.error[0]) + 1e-5
    assert found.error[0] < 0.02 * true
    assert float(found.log_ratio[0, 0]) >= 0.4


def test_lattices_of_unrelated_spacings_are_refused():
    y = np.linspace(-1.0, 1.0, 8)
    source = posterior_of(
        edp.Responses.from_arrays(y, contribution=np.full((8, 1), 0.4)), model=FixedBandwidth(0.3)
    )
    noise = NoiseDistribution((_lattice(0.5), _lattice(0.61)), (0.2, 0.8))
    with pytest.raises(InvalidInputError, match="multiples of the smallest"):
        verify(source, noise, epsilon=[0.1], progressbar=False)
