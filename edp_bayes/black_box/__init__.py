"""Posteriors of two black-box laws: outcomes, the field of log ratios, privacy, pairs."""
