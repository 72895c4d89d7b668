"""Independent references in many digits, from the definitions alone: masses, cuts and sums."""

from __future__ import annotations

import itertools

import mpmath as mp


def binomial(n, p):
    """Masses of Binomial(n, p)."""
    return [mp.binomial(n, j) * p**j * (1 - p) ** (n - j) for j in range(n + 1)]


def shifted(masses):
    return [mp.mpf(0), *masses]


def padded(masses, size):
    return [*masses, *([mp.mpf(0)] * (size - len(masses)))]


def distributions(n, drawn, prob):
    """P_plus and P_minus of the sampled count: the critical entry is drawn or it is not."""
    p, rate = mp.mpf(prob), mp.mpf(drawn) / n
    inside, outside = binomial(drawn - 1, p), binomial(drawn, p)
    plus = [
        rate * a + (1 - rate) * b
        for a, b in zip(padded(shifted(inside), drawn + 1), outside, strict=True)
    ]
    minus = [
        rate * a + (1 - rate) * b for a, b in zip(padded(inside, drawn + 1), outside, strict=True)
    ]
    return plus, minus


def hypergeometric(total, positives, drawn):
    return [
        mp.binomial(positives, j) * mp.binomial(total - positives, drawn - j)
        / mp.binomial(total, drawn)
        if 0 <= drawn - j <= total - positives
        else mp.mpf(0)
        for j in range(drawn + 1)
    ]  # fmt: skip


def known_distributions(n, drawn, prob, known, known_positive):
    """Literal: how many known entries are drawn, how many of them positive, then the unknown."""
    p, rate = mp.mpf(prob), mp.mpf(drawn) / n

    def others(size):
        out = [mp.mpf(0)] * (drawn + 1)
        for v, weight in enumerate(hypergeometric(n - 1, known, size)):
            if weight == 0 or v > known or size - v > n - 1 - known:
                continue
            seen = hypergeometric(known, known_positive, v)
            rest = binomial(size - v, p)
            for (a, x), (b, y) in itertools.product(enumerate(seen), enumerate(rest)):
                out[a + b] += weight * x * y
        return out

    inside, outside = others(drawn - 1), others(drawn) if drawn < n else [mp.mpf(0)] * (drawn + 1)
    plus = [rate * a + (1 - rate) * b for a, b in zip(shifted(inside)[:-1], outside, strict=True)]
    minus = [rate * a + (1 - rate) * b for a, b in zip(inside, outside, strict=True)]
    return plus, minus


def replacement_distributions(n, drawn, prob, known=0, known_positive=0):
    """Literal: how often the critical entry is drawn, then the draws of the other entries."""
    p = mp.mpf(prob)
    plus, minus = ([mp.mpf(0)] * (drawn + 1) for _ in range(2))
    for b, weight in enumerate(binomial(n - 1 - known, p)):
        share = mp.mpf(known_positive + b) / (n - 1)
        for k, times in enumerate(binomial(drawn, mp.mpf(1) / n)):
            for j, mass in enumerate(binomial(drawn - k, share)):
                plus[j + k] += weight * times * mass
                minus[j] += weight * times * mass
    return plus, minus


def hockey_stick(plus, minus, epsilon):
    growth = mp.exp(mp.mpf(epsilon))
    return mp.fsum(max(a - growth * b, mp.mpf(0)) for a, b in zip(plus, minus, strict=True))


def far_delta(epsilon, n, drawn, prob, *, mirrored):
    """H_eps of two huge binomial mixtures: bisect for the cut, then sum until nothing is left."""
    p = mp.mpf(prob)
    p = 1 - p if mirrored else p
    rate, growth = mp.mpf(drawn) / n, mp.exp(mp.mpf(epsilon))

    def log_mass(size, j):
        if not 0 <= j <= size:
            return mp.mpf("-inf")
        choose = mp.loggamma(size + 1) - mp.loggamma(j + 1) - mp.loggamma(size - j + 1)
        return choose + j * mp.log(p) + (size - j) * mp.log(1 - p)

    def gain(j, inside, before, outside):
        plus = rate * before + (1 - rate) * outside
        return plus - growth * (rate * inside + (1 - rate) * outside)

    def at(j):
        return [
            mp.exp(log_mass(drawn - 1, j)),
            mp.exp(log_mass(drawn - 1, j - 1)),
            mp.exp(log_mass(drawn, j)),
        ]

    low, high = int(drawn * p), drawn + 1
    low = max(low - 1, -1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if gain(middle, *at(middle)) > 0 else (middle, high)
    total, j = mp.mpf(0), high
    if j > drawn:
        return total
    inside, before, outside = at(j)
    odds = p / (1 - p)
    while j <= drawn:
        term = gain(j, inside, before, outside)
        total += term
        if term < total * mp.mpf(10) ** -22:
            break
        before = inside if j < drawn else mp.mpf(0)
        inside *= (drawn - 1 - j) * odds / (j + 1)
        outside *= (drawn - j) * odds / (j + 1)
        j += 1
    return total


def noisy_delta(plus, minus, epsilon, family, scale):
    """Hockey stick of both noisy distributions: bisect for the sign change, then sum tails."""
    growth, s = mp.exp(mp.mpf(epsilon)), mp.mpf(scale)
    weights = [a - growth * b for a, b in zip(plus, minus, strict=True)]

    def density(d):
        return mp.exp(-d * d / (2 * s * s)) if family == "gaussian" else mp.exp(-abs(d) / s)

    def tail(d):
        if family == "gaussian":
            return mp.erfc(d / s / mp.sqrt(2)) / 2
        return mp.exp(-d / s) / 2 if d > 0 else 1 - mp.exp(d / s) / 2

    def excess(x):
        return mp.fsum(w * density(x - j) for j, w in enumerate(weights))

    low, high, step = mp.mpf(0), mp.mpf(len(weights) - 1), 1 + s
    if family == "laplace":
        if excess(high) <= 0:
            return mp.mpf(0)
    elif max(weights) <= 0:
        return mp.mpf(0)
    while excess(low) > 0:
        low -= step
        step *= 2
    while excess(high) < 0:
        high += step
        step *= 2
    for _ in range(70):
        middle = (low + high) / 2
        low, high = (low, middle) if excess(middle) > 0 else (middle, high)
    return mp.fsum(w * tail(low - j) for j, w in enumerate(weights))
