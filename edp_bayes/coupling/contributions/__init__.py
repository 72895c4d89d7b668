"""How individuals contribute: how often, how much, and depending on what."""
