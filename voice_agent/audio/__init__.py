"""Pure signal code: PCM frames, resampling, G.711, WAV. No asyncio, no engine, no clock."""
