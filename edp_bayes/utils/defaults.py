"""Defaults that packages share."""

PROB = 0.95
