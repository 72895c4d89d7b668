"""Many releases: what several databases reveal together, and how many stay within a target."""
