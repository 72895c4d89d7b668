"""The least noise that protects everybody: a linear program."""
