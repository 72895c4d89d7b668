"""What privacy costs: utility, sampling error, the mechanism of least loss."""
