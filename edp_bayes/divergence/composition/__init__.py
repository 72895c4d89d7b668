"""Privacy losses of a pair of mixtures, and of many independent databases."""
