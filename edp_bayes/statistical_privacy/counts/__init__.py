"""Exact privacy of counts."""
