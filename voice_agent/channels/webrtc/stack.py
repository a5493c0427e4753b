"""What all calls by WebRTC share. Importing it imports aiortc."""

from __future__ import annotations

from aiortc import RTCIceServer

from voice_agent.channels.webrtc.offers import Offer
from voice_agent.channels.webrtc.opus import PacketCache
from voice_agent.channels.webrtc.servers import credential
from voice_agent.channels.webrtc.wire import WebRtcWire
from voice_agent.config import WebRtcOptions
from voice_agent.ice_addresses import IceOptions


class Stack:
    """Makes wires, all on one cache of packets."""

    def __init__(self, options: WebRtcOptions) -> None:
        self._options = options
        self._servers = tuple(
            RTCIceServer(urls=list(server.urls), username=server.username, credential=credential(server))
            for server in options.ice_servers
        )
        self.cache = PacketCache()

    def wire(self, offer: Offer, *, loopback: bool) -> WebRtcWire:
        """Return the wire of one caller. ``loopback``: its offer came from this machine."""
        options = self._options
        ice = IceOptions(
            servers=self._servers,
            addresses=options.bind_addresses,
            loopback=loopback,
            public_address=options.public_address or None,
            gather_timeout_s=options.gather_timeout_s,
        )
        return WebRtcWire(
            ice,
            self.cache,
            offer.conversation_id,
            events=offer.events,
            metrics=offer.metrics,
            states=offer.states,
        )
