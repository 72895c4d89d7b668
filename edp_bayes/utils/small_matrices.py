"""Matrices of a few rows, compiled: no call of a library pays for them."""

from __future__ import annotations

import math

from edp_bayes.utils.compiled import borrowing

__all__ = ["cholesky", "congruence", "eigen", "inverse_factor"]

SWEEPS = 12
NOTHING = 1e-300


@borrowing
def cholesky(matrix, out, d):  # type: ignore[no-untyped-def]
    """Fill in the lower factor of a positive definite matrix."""
    for a in range(d):
        for b in range(a + 1):
            rest = matrix[a, b]
            for c in range(b):
                rest -= out[a, c] * out[b, c]
            out[a, b] = math.sqrt(max(rest, NOTHING)) if a == b else rest / out[b, b]
        for b in range(a + 1, d):
            out[a, b] = 0.0


@borrowing
def inverse_factor(factor, out, d):  # type: ignore[no-untyped-def]
    """Fill in the inverse of a lower triangular matrix."""
    for a in range(d):
        for b in range(d):
            out[a, b] = 0.0
        out[a, a] = 1.0 / factor[a, a]
        for b in range(a):
            rest = 0.0
            for c in range(b, a):
                rest += factor[a, c] * out[c, b]
            out[a, b] = -rest / factor[a, a]


@borrowing
def congruence(left, matrix, out, d):  # type: ignore[no-untyped-def]
    """Fill in left matrix left' for a symmetric matrix; out is neither of them."""
    for a in range(d):
        for b in range(a + 1):
            total = 0.0
            for c in range(d):
                part = 0.0
                for e in range(d):
                    part += matrix[c, e] * left[b, e]
                total += left[a, c] * part
            out[a, b] = total
            out[b, a] = total


@borrowing
def eigen(matrix, vectors, d):  # type: ignore[no-untyped-def]
    """Diagonalise a symmetric matrix in place, by Jacobi's rotations; columns are the vectors."""
    for a in range(d):
        for b in range(d):
            vectors[a, b] = 1.0 if a == b else 0.0
    for _ in range(SWEEPS):
        off, size = 0.0, 0.0
        for a in range(d):
            size += matrix[a, a] * matrix[a, a]
            for b in range(a):
                off += matrix[a, b] * matrix[a, b]
        if off <= 1e-32 * size or off == 0.0:
            break
        for a in range(d - 1):
            for b in range(a + 1, d):
                if matrix[a, b] == 0.0:
                    continue
                theta = 0.5 * (matrix[b, b] - matrix[a, a]) / matrix[a, b]
                t = 1.0 / (abs(theta) + math.sqrt(theta * theta + 1.0))
                t = -t if theta < 0.0 else t
                cosine = 1.0 / math.sqrt(t * t + 1.0)
                sine = t * cosine
                for c in range(d):
                    first, second = matrix[c, a], matrix[c, b]
                    matrix[c, a] = cosine * first - sine * second
                    matrix[c, b] = sine * first + cosine * second
                for c in range(d):
                    first, second = matrix[a, c], matrix[b, c]
                    matrix[a, c] = cosine * first - sine * second
                    matrix[b, c] = sine * first + cosine * second
                for c in range(d):
                    first, second = vectors[c, a], vectors[c, b]
                    vectors[c, a] = cosine * first - sine * second
                    vectors[c, b] = sine * first + cosine * second
