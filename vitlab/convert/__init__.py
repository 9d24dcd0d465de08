"""Models of other libraries, opened or converted to ours, and ours for other programs."""
