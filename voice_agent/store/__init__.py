"""What outlives a call: conversations and their events."""
