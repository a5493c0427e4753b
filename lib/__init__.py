"""What the example agent's tools stand on."""
