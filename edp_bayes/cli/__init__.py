"""The command line: `edp-bayes demo` and `edp-bayes audit`."""

from edp_bayes.cli.app import main

__all__ = ["main"]
