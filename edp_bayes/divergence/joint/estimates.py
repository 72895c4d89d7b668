"""Hockey-stick integrals from density ratios at points of the sampled distribution.

With u = q / r and v = p / r at points of r, H(p || q) = E(v - e^eps u)_+ and
H(q || p) = E(u - e^eps v)_+. The difference v - u has mean zero and is the control variate. Where
its sample mean is not to be trusted it is left alone, and H(q || p) = 1 - E min(u, e^eps v), whose
integrand is bounded where either ratio is. That is where a ratio is large, and where the mean is
further from zero than its error explains: the points then miss a part of q or p, which the control
variate would take for chance. The standard error is that of the means of eight consecutive parts of
the points, which are nets of their own: it is rather too large while shifts are moderate.
"""

from __future__ import annotations

import math

from edp_bayes.utils.compiled import borrowing, decay
from edp_bayes.utils.small_matrices import cholesky, inverse_factor

__all__ = [
    "PARTS",
    "add_density",
    "add_mixture",
    "choose",
    "control_variate",
    "covered",
    "estimate",
    "raise_where_few",
]

PARTS = 8
LARGEST_RATIO = 30.0
LARGEST_ERROR = 0.1  # of the mean of a ratio
MOST_ERRORS = 4.0  # standard errors of that mean
MISSED = 2e-3  # of the mass of p, which points may miss
LEAST_CERTAIN = 5e-3  # standard error of the mass of p


@borrowing
def add_density(out, work, x, count, weight, mean, inverse, d):  # type: ignore[no-untyped-def]
    """Add the density of a weighted normal at points (d, n); inverse is that of its factor.

    weight N(x; mean, S) with S = L L' and inverse = L^-1, lower triangular, the product of whose
    diagonal is det(S)^-1/2. work and out are (n,); the first two rows have loops of their own, for
    speed.
    """
    height = weight * (2.0 * math.pi) ** (-0.5 * d)
    for n in range(count):
        work[n] = 0.0
    for a in range(d):
        height *= inverse[a, a]
        offset = 0.0
        for b in range(a + 1):
            offset += inverse[a, b] * mean[b]
        if a == 0:
            for n in range(count):
                away = inverse[0, 0] * x[0, n] - offset
                work[n] += 0.5 * away * away
        elif a == 1:
            for n in range(count):
                away = inverse[1, 0] * x[0, n] + inverse[1, 1] * x[1, n] - offset
                work[n] += 0.5 * away * away
        else:
            for n in range(count):
                away = -offset
                for b in range(a + 1):
                    away += inverse[a, b] * x[b, n]
                work[n] += 0.5 * away * away
    for n in range(count):
        out[n] += height * decay(work[n])[0]


@borrowing
def add_mixture(out, work, x, count, weights, means, covariances, factor, inverse, d):  # type: ignore[no-untyped-def]
    """Add the density of a normal mixture at points, as `add_density`; of its components above 0.

    weights is (component,), means (component, d), covariances (component, d, d); factor and inverse
    are workspace of shape (d, d).
    """
    for k in range(weights.size):
        if weights[k] > 0.0:
            cholesky(covariances[k], factor, d)
            inverse_factor(factor, inverse, d)
            add_density(out, work, x, count, weights[k], means[k], inverse, d)


@borrowing
def mean_and_error(values):  # type: ignore[no-untyped-def]
    """Return the mean of what the parts of the points say, and its standard error.

    That of PARTS means of equal weight, as if independent.
    """
    mean, scatter = 0.0, 0.0
    for part in range(PARTS):
        mean += values[part] / PARTS
    for part in range(PARTS):
        scatter += (values[part] - mean) ** 2
    return mean, math.sqrt(scatter / (PARTS * (PARTS - 1)))


@borrowing
def covered(v, count, parts):  # type: ignore[no-untyped-def]
    """Return whether the points reach all of p: E v is 1 as far as its error tells, which is small.

    Where q alone is missed, H = 1 - E min(u, e^eps v) is right: p has next to nothing there.
    """
    size = count // PARTS
    for part in range(PARTS):
        total = 0.0
        for n in range(part * size, (part + 1) * size):
            total += v[n]
        parts[2, part] = total / size
    mean, error = mean_and_error(parts[2])
    return error <= LEAST_CERTAIN and abs(mean - 1.0) <= max(MISSED, MOST_ERRORS * error)


@borrowing
def control_variate(u, v, count, parts):  # type: ignore[no-untyped-def]
    """Return mean and mean square deviation of v - u, and whether it is trusted as control variate.

    What each part of the points says of it becomes the last row of parts.
    """
    size = count // PARTS
    square, largest = 0.0, 0.0
    for part in range(PARTS):
        total = 0.0
        for n in range(part * size, (part + 1) * size):
            control = v[n] - u[n]
            total += control
            square += control * control
            largest = max(largest, max(u[n], v[n]))
        parts[2, part] = total / size
    mean, mean_error = mean_and_error(parts[2])
    square = square / count - mean * mean
    most = min(LARGEST_ERROR, MOST_ERRORS * mean_error)
    trusted = largest <= LARGEST_RATIO and abs(mean) <= most and square > 0.0
    return mean, square, trusted


@borrowing
def choose(e, products, known, parts, value, error, split):  # type: ignore[no-untyped-def]
    """Fill in the larger of both directions at one epsilon, and its standard error.

    The first two rows of parts are what the parts say of each direction, products the means of
    these times the control variate, of which `control_variate` has said what is known.
    """
    mean, square, trusted = known
    value[e], error[e], chosen = 0.0, 0.0, 0
    for side in range(2):
        slope = 0.0
        if trusted:
            slope = (products[side] - mean_and_error(parts[side])[0] * mean) / square
        for part in range(PARTS):
            # f - slope control has the mean of f, as the control has mean zero
            parts[side, part] -= slope * parts[2, part]
        found, own_error = mean_and_error(parts[side])
        if found > value[e]:
            value[e], error[e], chosen = min(found, 1.0), own_error, side
    for part in range(PARTS):
        split[part, e] += parts[chosen, part]


@borrowing
def raise_where_few(value, error, count):  # type: ignore[no-untyped-def]
    """Raise errors where too few points tell: they may all have missed it."""
    for e in range(value.size):
        if value[e] * count < PARTS:
            error[e] = max(error[e], 1.0 / count)


@borrowing
def estimate(u, v, count, growth, parts, value, error, split):  # type: ignore[no-untyped-def]
    """Fill in max(H(p || q), H(q || p)) and its standard error at every epsilon.

    Growth is exp(eps) - 1, (epsilon,); u and v are (count,) at least, parts is workspace of shape
    (3, PARTS). What each part of the points says is added to split, shape (PARTS, epsilon). See
    "Integrals" in docs/mathematics/several_queries.md.
    """
    size = count // PARTS
    known = control_variate(u, v, count, parts)
    trusted = known[2]
    for e in range(growth.size):
        forward_product, backward_product = 0.0, 0.0
        for part in range(PARTS):
            first, second, first_product, second_product = 0.0, 0.0, 0.0, 0.0
            for n in range(part * size, (part + 1) * size):
                control = v[n] - u[n]
                if trusted:
                    # v - exp(eps) u = (v - u) - growth u, without cancellation for small eps
                    above = max(control - growth[e] * u[n], 0.0)
                    below = max(-control - growth[e] * v[n], 0.0)
                else:
                    above = 1.0 - min(v[n], (1.0 + growth[e]) * u[n])
                    below = 1.0 - min(u[n], (1.0 + growth[e]) * v[n])
                first += above
                second += below
                first_product += above * control
                second_product += below * control
            parts[0, part], parts[1, part] = first / size, second / size
            forward_product += first_product / count
            backward_product += second_product / count
        products = forward_product, backward_product
        choose(e, products, known, parts, value, error, split)
