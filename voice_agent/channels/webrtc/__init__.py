"""The browser's wire: audio as Opus over WebRTC, our JSON messages over a data channel beside it.

`channel` has the HTTP routes, `wire` the call's side, `peer` the connection, `line` the audio on it;
`offers`, `pacer` and `reorder` decide, without a clock or a network. Only `peer`, `line` and `opus`
import aiortc and PyAV, and are imported once somebody is to call.
"""
