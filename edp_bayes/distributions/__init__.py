"""What a response or a noise may follow: mixtures, kernels, noise, lattices."""
