"""How the SIP channel is set up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from voice_agent.channels.sip.agent import Credentials
from voice_agent.channels.sip.door import Network
from voice_agent.channels.sip.states import Timers


@dataclass(frozen=True)
class SipSetup:
    """How the channel is set up.

    Attributes:
        networks: Whose calls are taken as they come.
        passwords: User → password of telephones that may call from anywhere.
        registrar: ``host`` or ``host:port`` of an exchange to register at, with `credentials`.
    """

    codecs: tuple[str, ...] = ("g722", "pcmu", "pcma")
    host: str = "127.0.0.1"
    rtp_ports: tuple[int, int] = (10000, 10999)
    public_address: str = ""
    networks: tuple[Network, ...] = ()
    passwords: Mapping[str, str] | None = None
    registrar: str = ""
    credentials: Credentials | None = None
    expires_s: int = 300
    timers: Timers | None = None
