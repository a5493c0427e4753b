"""What may be looked at: live calls and past conversations, read from the store and the tracker's events."""
