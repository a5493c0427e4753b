"""A simulated caller that places a real call: it knows the wire and nothing of the agent behind it.

`lines` says what is spoken and when, `conversation` decides from audio time, `playout` and
`microphone` are the caller's ear and mouth, `session` drives them on a 20 ms clock, and `verdict`
says what was missing.
"""
