"""Hockey-stick integrals of what is published of an answer: rounded, in bins, from a threshold on.

A bin is published as one value, so the positive and the negative part of p - exp(eps) q in it
cancel, and nothing else is lost: delta = sum over bins of (P(bin) - exp(eps) Q(bin))_+.
"""
