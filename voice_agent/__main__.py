"""``python -m voice_agent``: the command line without its script."""

from voice_agent.cli import main

main()
