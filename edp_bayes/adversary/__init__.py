"""What an adversary knows beside the response, as regressors of it."""
