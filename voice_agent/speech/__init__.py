"""Speech engines behind small Protocols, their shared worker pool, and the text a voice may read."""
