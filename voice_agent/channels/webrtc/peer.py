"""One WebRTC connection, on aiortc: an offer answered, a data channel, audio, and an end.

Callers' offers are answered; nothing here makes one. Of what a browser offers, the first audio section and
the data channel named `LABEL` are used. Other sections are answered as inactive: nothing is sent for them, and
what comes all the same is dropped by the transport.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from aiortc import (
    RTCConfiguration,
    RTCDataChannel,
    RTCPeerConnection,
    RTCRtpReceiver,
    RTCSessionDescription,
)

from voice_agent.channels.webrtc.line import AudioLine
from voice_agent.channels.webrtc.offers import BadOffer, finish_answer
from voice_agent.ice_addresses import IceOptions, choose_addresses

log = logging.getLogger(__name__)

LABEL = "voice-agent"
"""Name of the data channel that carries our messages."""
MAX_UNSENT_BYTES = 512 * 1024
"""Messages a client has not taken before it counts as gone."""
CLOSE_S = 2.0
"""Limit on closing a connection."""


class Peer:
    """The near end of one caller's connection.

    Args:
        on_packet: Called with each audio packet's sequence number, timestamp and payload.
        on_message: Called with each message on the data channel; ``""`` stands for one that is no text.
        on_open: Called once audio can be sent.
        on_channel: Called once the data channel is open.
        on_end: Called once the connection is gone, whichever end closed it.
    """

    def __init__(
        self,
        ice: IceOptions,
        *,
        on_packet: Callable[[int, int, bytes], None],
        on_message: Callable[[str], None],
        on_open: Callable[[], None],
        on_channel: Callable[[], None],
        on_end: Callable[[], None],
    ) -> None:
        self._ice = ice
        self._on_message, self._on_open, self._on_channel, self._on_end = on_message, on_open, on_channel, on_end
        self._connection = RTCPeerConnection(RTCConfiguration(iceServers=list(ice.servers)))
        self._channel: RTCDataChannel | None = None
        self.connected: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        transceiver = self._connection.addTransceiver("audio", direction="sendrecv")
        known = RTCRtpReceiver.getCapabilities("audio")
        assert known is not None
        transceiver.setCodecPreferences([codec for codec in known.codecs if codec.name.lower() == "opus"])
        self.line = AudioLine(transceiver, on_packet, self._opened)
        self._connection.on("datachannel", self._has_channel)
        self._connection.on("connectionstatechange", self._has_changed)

    @property
    def ice_state(self) -> str:
        """As browsers name it: ``new``, ``checking``, ``completed``, ``failed`` or ``closed``."""
        return str(self._connection.iceConnectionState)

    async def answer(self, sdp: str) -> str:
        """Return the answer to a caller's offer. Connecting begins with it.

        Raises:
            BadOffer: The offer is malformed, or offers nothing to connect.
        """
        try:
            await self._connection.setRemoteDescription(RTCSessionDescription(sdp, "offer"))
            for extra in self._connection.getTransceivers()[1:]:
                extra.direction = "inactive"
            choose_addresses(self._connection, self._ice)
            await self._connection.setLocalDescription(await self._connection.createAnswer())
        except OSError:
            # No socket could be opened: that is no fault of the offer's.
            raise
        except Exception as fault:
            # aiortc raises whatever a malformed line leads to, some of it only where the answer is made.
            log.info("an offer could not be used", exc_info=fault)
            raise BadOffer(422, "bad_sdp", 'The "sdp" is no session description that can be answered.') from None
        return finish_answer(self._connection.localDescription.sdp, self._ice.public_address)

    @property
    def has_channel(self) -> bool:
        """Whether the caller has opened the data channel."""
        return self._channel is not None

    def send_text(self, text: str) -> bool:
        """Send a message on the data channel. False when the caller takes no more. One that was closed takes all."""
        channel = self._channel
        if channel is None or channel.bufferedAmount > MAX_UNSENT_BYTES:
            return False
        if channel.readyState == "open":
            channel.send(text)
        return True

    async def close(self) -> None:
        """Close the connection. Bounded; never raises."""
        connecting = self._connecting()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._close()
                # It goes on with the next transport, finds that closed too, and fails.
                await asyncio.gather(*connecting, return_exceptions=True)
        except TimeoutError:
            log.warning("a WebRTC connection did not close within %.0f s", CLOSE_S)
        self._settle(False)

    def _connecting(self) -> list[asyncio.Task[Any]]:
        """The tasks in which aiortc connects; it keeps no hold of them, and their failures would be nobody's."""
        frames = ((task, getattr(task.get_coro(), "cr_frame", None)) for task in asyncio.all_tasks())
        return [
            task
            for task, frame in frames
            if frame is not None
            and frame.f_code.co_name == "__connect"
            and frame.f_locals.get("self") is self._connection
        ]

    async def _close(self) -> None:
        try:
            await self._connection.close()
        except Exception as fault:
            # After an offer that made no sense aiortc has parts without a transport, and stops at the first of them.
            log.info("a WebRTC connection is closed part by part", exc_info=fault)
            parts = (*(t.receiver for t in self._connection.getTransceivers()), self._connection.sctp)
            for transport in [part.transport for part in parts if part is not None and part.transport is not None]:
                for stop in (transport.stop, transport.transport.stop):
                    try:
                        await stop()
                    except Exception:
                        log.exception("a part of a WebRTC connection could not be closed")
            self._connection.remove_all_listeners()

    def _opened(self) -> None:
        self._settle(True)
        self._on_open()

    def _settle(self, connected: bool) -> None:
        if not self.connected.done():
            self.connected.set_result(connected)

    def _has_changed(self) -> None:
        if self._connection.connectionState in ("failed", "closed"):
            self._settle(False)
            self._on_end()

    def _has_channel(self, channel: RTCDataChannel) -> None:
        if channel.label != LABEL or self._channel is not None:
            log.debug("another data channel was opened; it is ignored")
            return
        self._channel = channel
        channel.on("message", self._has_message)
        self._on_channel()

    def _has_message(self, message: Any) -> None:
        self._on_message(message if isinstance(message, str) else "")
