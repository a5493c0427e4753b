#!/usr/bin/env python3
"""Talk to the agent by this machine's microphone and speaker.

scripts/talk.py [PATH] [--list] [--input DEVICE] [--output DEVICE] [--headphones] [--record DIR]

The same as ``voice-agent talk``, from a clone that is not installed as a command.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from voice_agent.cli import main

if __name__ == "__main__":
    sys.argv.insert(1, "talk")
    main()
