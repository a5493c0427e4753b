"""Where the service listens, and to whom."""

from __future__ import annotations

from pydantic import Field

from voice_agent.config.options import Options, Seconds


class ServerOptions(Options):
    """Where the service listens, and to whom."""

    host: str = "127.0.0.1"
    """Address to listen on; beyond loopback a key is needed."""
    port: int = Field(8080, ge=0, le=65_535)
    """Port to listen on; 0 takes any that is free."""
    public_url: str | None = Field(None, pattern=r"^https?://[^\s/?#]+(/[^\s?#]*)?$")
    """Where the service is seen from outside, such as ``https://agent.example.com``; carriers sign it."""
    api_key_env: str = "VOICE_AGENT_API_KEY"
    """Environment variable with the key that callers must present when not on loopback."""
    allowed_origins: tuple[str, ...] = ()
    """Web pages of other hosts that may connect, such as ``https://www.example.com``."""
    max_calls: int = Field(100, ge=1, le=10_000)
    """Calls beyond this are refused with a clear answer."""
    reconnect_takes_over: bool = True
    """Whether a new connection ends the call that carries the same conversation; otherwise it is refused."""
    drain_timeout_s: Seconds = 10
    """How long calls may take when the service is asked to stop: to finish a phrase, say goodbye, and end."""
