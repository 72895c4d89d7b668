"""From rows to responses and sparse contributions."""
