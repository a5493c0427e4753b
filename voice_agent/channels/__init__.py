"""The wires callers come in by. Each implements ``voice_agent.call.wire.Wire``."""
