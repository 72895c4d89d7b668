"""Where blocks of individuals are evaluated: here, in threads, on Dask or on Spark."""
