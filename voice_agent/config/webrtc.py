"""Calls from browsers."""

from __future__ import annotations

from ipaddress import ip_address

from pydantic import Field, field_validator

from voice_agent.config.channel import ChannelOptions
from voice_agent.config.options import Options, Seconds


class IceServer(Options):
    """A server that helps to get through networks."""

    urls: tuple[str, ...] = Field(min_length=1)
    """Addresses such as ``stun:stun.example.com:3478`` or ``turn:turn.example.com:3478?transport=udp``."""
    username: str = ""
    """Name at a TURN server."""
    credential_env: str = ""
    """Environment variable with the secret that goes with the name."""

    @field_validator("urls")
    @classmethod
    def _known(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            if not url.startswith(("stun:", "turn:", "turns:")):
                raise ValueError(f"{url!r} must begin with stun:, turn: or turns:")
        return urls


class WebRtcOptions(ChannelOptions):
    """Calls from browsers."""

    ice_servers: tuple[IceServer, ...] = ()
    """STUN and TURN servers for callers and the service, which uses the first of each kind; none by default."""
    connect_timeout_s: Seconds = 15
    """How long a caller's media may take to come through."""
    gather_timeout_s: float = Field(3, ge=0.1, le=30)
    """How long STUN and TURN servers may take to answer."""
    bind_addresses: tuple[str, ...] = ()
    """Addresses of this machine that media is received at; empty for all but loopback."""
    public_address: str = ""
    """Address that callers reach this machine by, where a router translates one to one."""

    @field_validator("bind_addresses")
    @classmethod
    def _addresses(cls, addresses: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(ip_address(address)) for address in addresses)

    @field_validator("public_address")
    @classmethod
    def _address(cls, address: str) -> str:
        return str(ip_address(address)) if address else ""
