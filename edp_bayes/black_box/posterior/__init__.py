"""Posterior of two black-box distributions: the field of log ratios and what follows from it."""
