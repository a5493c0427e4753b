"""A voice agent that picks up a call, greets first, listens, acts, speaks, and yields the floor.

The package is laid out by room; see ``docs/architecture.md``.
"""

import os

# ONNX Runtime reports its use over the network, and keeps an id of the machine, unless this is set before it loads.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")

__version__ = "0.1.0"
