"""Servers of tools that speak the Model Context Protocol: connections to them, and their tools for the dialogue."""
