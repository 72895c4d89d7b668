"""Hockey-stick integrals in several dimensions, by quasi-Monte-Carlo, and bounds on them."""
