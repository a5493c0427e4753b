"""The claims desk of an insurer that does not exist."""
