"""From contributions to curves: of one answer, of several, and their upper bounds."""
