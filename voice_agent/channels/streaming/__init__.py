"""Wires that stream a call over a WebSocket: one core, and a small serializer for each provider's messages."""
