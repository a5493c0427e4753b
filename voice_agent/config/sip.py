"""Calls by SIP."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import ip_address, ip_network
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, field_validator

from voice_agent.config.channel import ChannelOptions
from voice_agent.config.options import Options
from voice_agent.config.turn_taking import TurnTaking

HostAndPort = Annotated[str, StringConstraints(pattern=r"^([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:\d{1,5})?$")]
SipUser = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9+._~*-]{1,64}$")]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]


class SipRegistration(Options):
    """An exchange that brings its calls to whoever is registered."""

    registrar: HostAndPort
    """Its host, with a port if that is not 5060. Its calls are taken as they come."""
    user: SipUser
    """Name at the exchange."""
    password_env: Variable = "VOICE_AGENT_SIP_PASSWORD"
    """Environment variable with the password that goes with the name."""
    domain: HostAndPort | None = None
    """What stands behind the ``@`` in addresses of the exchange, where that is not its host."""
    expires_s: int = Field(300, ge=30, le=86_400)
    """How long a registration is asked to last; it is renewed in time."""


class SipOptions(ChannelOptions):
    """Calls by SIP: from telephones, exchanges and trunks."""

    enabled: bool = False
    """Whether the port is opened."""
    host: str = "127.0.0.1"
    """Address to listen on, signalling and media; beyond loopback `allow`, `callers` or `registration` is needed."""
    port: int = Field(5060, ge=0, le=65_535)
    """UDP port to listen on; 0 takes any that is free."""
    rtp_ports: tuple[int, int] = (10000, 10999)
    """First and last UDP port for media; each call takes two."""
    public_address: str = ""
    """Address that others reach this machine by, where a router translates one to one."""
    codecs: tuple[Literal["g722", "pcmu", "pcma"], ...] = Field(("g722", "pcmu", "pcma"), min_length=1)
    """Codecs, best first. The first that a caller has as well is spoken."""
    registration: SipRegistration | None = None
    """An exchange to register at."""
    callers: Mapping[SipUser, Variable] = Field(default_factory=dict)
    """Telephones that may call from anywhere: name → environment variable with the password."""
    allow: tuple[str, ...] = ()
    """Networks whose calls are taken as they come, such as ``192.0.2.0/24``."""
    turn_taking: TurnTaking = TurnTaking(lead_ms=0)
    """When the caller is listened to, answered, and yielded to. Nothing is sent ahead: the wire cannot take it back."""

    @field_validator("rtp_ports")
    @classmethod
    def _span(cls, span: tuple[int, int]) -> tuple[int, int]:
        if not 1024 <= span[0] < span[1] <= 65_535:
            raise ValueError("must be two ports from 1024 to 65535, the lower one first")
        return span

    @field_validator("allow")
    @classmethod
    def _networks(cls, networks: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(str(ip_network(network)) for network in networks)

    @field_validator("public_address")
    @classmethod
    def _address(cls, address: str) -> str:
        return str(ip_address(address)) if address else ""
