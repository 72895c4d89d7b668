"""The distributions without each individual, from the posterior draw of the response."""
