"""What all packages share: validation, labels, files, progress, formatting, compiled helpers."""
