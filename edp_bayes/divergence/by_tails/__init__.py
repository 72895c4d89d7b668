"""Hockey-stick integrals of any two Gaussian mixtures from the tails at their sign changes."""
