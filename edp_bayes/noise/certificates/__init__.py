"""Sound bounds on the log ratio of noisy densities."""
