"""Which of this machine's addresses a connection uses, and how long STUN and TURN servers may take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from aiortc import RTCIceServer, RTCPeerConnection
from aiortc.rtcicetransport import RTCIceGatherer


@dataclass(frozen=True, slots=True)
class IceOptions:
    """How a connection finds its way.

    Attributes:
        servers: STUN and TURN servers; aiortc uses the first of each kind.
        addresses: This machine's addresses to receive media at; empty for all but loopback.
        loopback: Also receive at 127.0.0.1: the caller is on this machine.
        public_address: Told to callers instead of this machine's own.
        gather_timeout_s: Limit on asking STUN and TURN servers.
    """

    servers: tuple[RTCIceServer, ...] = ()
    addresses: tuple[str, ...] = ()
    loopback: bool = False
    public_address: str | None = None
    gather_timeout_s: float = 3.0


def choose_addresses(connection: RTCPeerConnection, ice: IceOptions) -> None:
    """Before a connection gathers: choose its addresses and time limit, which aioice fixes for itself."""
    for gatherer in _gatherers(connection):
        _gather_from(gatherer, ice)


def _gatherers(connection: RTCPeerConnection) -> Sequence[RTCIceGatherer]:
    transports = [transceiver.receiver.transport for transceiver in connection.getTransceivers()]
    if connection.sctp is not None:
        transports.append(connection.sctp.transport)
    return list({id(t.transport.iceGatherer): t.transport.iceGatherer for t in transports}.values())


def _gather_from(gatherer: RTCIceGatherer, ice: IceOptions) -> None:
    gather = gatherer._connection.get_component_candidates

    async def chosen(component: int, addresses: list[str], timeout: int = 5) -> Any:  # noqa: ASYNC109 - aioice's own
        own = list(ice.addresses) or addresses
        if ice.loopback and "127.0.0.1" not in own:
            own = [*own, "127.0.0.1"]
        return await gather(component=component, addresses=own, timeout=ice.gather_timeout_s)  # type: ignore[arg-type]

    vars(gatherer._connection).update(get_component_candidates=chosen)
