"""Put the draws, the summaries and every diagnostic of an audit into one tree."""
