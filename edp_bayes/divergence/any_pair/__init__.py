"""Hockey-stick integrals of any two mixtures."""
