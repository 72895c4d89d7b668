"""Defaults that packages share."""

# Of a claim; bands and intervals take ArviZ's.
PROB = 0.95

# Kept draws of each chain: of a Markov chain, of a mechanism's, which is quick and mixes slowly,
# where every draw is independent, and of each of the many fits of a plan.
DRAWS = 500
MECHANISM_DRAWS = 1000
INDEPENDENT_DRAWS = 1000
PLANNING_DRAWS = 200
