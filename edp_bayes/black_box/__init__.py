"""Posteriors of two black-box distributions: outcomes, the field of log ratios, privacy, pairs."""
