"""Hockey-stick integrals of Laplace mixtures of one scale, in closed form."""
