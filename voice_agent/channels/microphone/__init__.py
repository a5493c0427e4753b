"""The microphone and speaker of this machine, as a wire like any other."""
