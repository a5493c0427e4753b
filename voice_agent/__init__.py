"""A voice agent that picks up a call, greets first, listens, acts, speaks, and yields the floor.

The package is laid out by room; see ``docs/architecture.md``.
"""

__version__ = "0.1.0"
