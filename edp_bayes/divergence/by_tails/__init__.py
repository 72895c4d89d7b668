"""Hockey-stick integrals of Gaussian mixtures, with Laplace noise or not, from their tails."""
