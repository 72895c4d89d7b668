"""Hockey-stick integrals in logarithms: for large epsilon and scales far apart."""
