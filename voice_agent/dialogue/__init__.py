"""The agent core: caller text in, replies out. Knows nothing of audio, speech engines or wires."""
