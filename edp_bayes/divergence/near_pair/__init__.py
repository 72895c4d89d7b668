"""Hockey-stick integrals of p and a p_i near it, a few microseconds each."""
