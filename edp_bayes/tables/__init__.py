"""Columns of any table, file or archive of records, and what a key column holds."""
