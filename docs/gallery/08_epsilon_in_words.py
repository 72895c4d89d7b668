"""
What epsilon means for a count
==============================

The probability that a count with Laplace noise stays within a relative width of the truth (Naldi
and D'Acquisto 2015, equation 10).
"""

from edp_bayes import plots

_ = plots.plot_iso_curves()
