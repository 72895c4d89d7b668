"""The command line: `edp-bayes demo`, `audit`, `property`, `mechanism`, `noise` and others."""

from edp_bayes.cli.app import main

__all__ = ["main"]
