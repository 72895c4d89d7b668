"""Audits of a query: plan, fit, evaluate every individual, put the result together."""
