"""What an audit of each kind returns: draws of privacy curves, bands, summaries, files."""
