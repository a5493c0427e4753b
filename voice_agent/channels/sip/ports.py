"""The UDP ports that media of calls runs through: a pair for each, RTP and RTCP."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections.abc import Callable

from voice_agent.channels.sip.transactions import Address

log = logging.getLogger(__name__)

RECEIVE_BUFFER_BYTES = 64 * 1024
"""Half a minute of a call's packets is far too much to hear late; this holds about three seconds."""
EXPEDITED = 0xB8
"""DSCP 46, as voice is marked (RFC 4594)."""


class NoPort(OSError):
    """All ports of the range are in use."""


class MediaPort(asyncio.DatagramProtocol):
    """One open pair. Sends and receives; never raises for what the network does."""

    def __init__(self, number: int, on_packet: Callable[[bytes, Address], None]) -> None:
        self.number, self._on_packet = number, on_packet
        self._rtp: asyncio.DatagramTransport | None = None
        self._rtcp: asyncio.DatagramTransport | None = None

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        self._on_packet(data, (addr[0], addr[1]))

    def error_received(self, exc: Exception) -> None:
        """The far end's port is closed: its silence ends the call, not this."""

    def attach(self, rtp: asyncio.DatagramTransport, rtcp: asyncio.DatagramTransport) -> None:
        self._rtp, self._rtcp = rtp, rtcp

    def send(self, packet: bytes, to: Address) -> None:
        """Send a packet of RTP."""
        _send(self._rtp, packet, to)

    def report(self, packet: bytes, to: Address) -> None:
        """Send a packet of RTCP. ``to``: where RTP goes; RTCP goes to the port above."""
        _send(self._rtcp, packet, (to[0], to[1] + 1))

    def close(self) -> None:
        for transport in (self._rtp, self._rtcp):
            if transport is not None:
                transport.close()
        self._rtp = self._rtcp = None


def _send(transport: asyncio.DatagramTransport | None, packet: bytes, to: Address) -> None:
    if transport is None or transport.is_closing() or not 0 < to[1] <= 65_535:
        return
    try:
        transport.sendto(packet, to)
    except (OSError, ValueError):
        log.debug("a packet could not be sent")


class MediaPorts:
    """The range of ports.

    Args:
        host: Address to bind to.
        span: First and last port.
    """

    def __init__(self, host: str, span: tuple[int, int]) -> None:
        self._host = host
        first = span[0] + span[0] % 2
        self._numbers = range(first, span[1], 2)
        self._next = 0

    async def open(self, on_packet: Callable[[bytes, Address], None]) -> MediaPort:
        """Open a pair.

        Raises:
            NoPort: None is free.
        """
        for _ in self._numbers:
            # Round and round: late packets of a call that is over do not meet the next one.
            number = self._numbers[self._next % len(self._numbers)]
            self._next += 1
            if (sockets := self._bind(number)) is not None:
                return await _attached(number, sockets, on_packet)
        raise NoPort(errno.EADDRINUSE, "no free pair in the range of RTP ports")

    def _bind(self, number: int) -> list[socket.socket] | None:
        sockets: list[socket.socket] = []
        try:
            for port in (number, number + 1):
                sockets.append(bound(self._host, port))
        except OSError as fault:
            for sock in sockets:
                sock.close()
            if fault.errno in (errno.EADDRINUSE, errno.EACCES):
                return None
            raise
        return sockets


def bound(host: str, port: int) -> socket.socket:
    """Return a UDP socket bound to an address. Raises: OSError."""
    family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    sock = socket.socket(family, kind, proto)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        if family == socket.AF_INET:
            sock.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, EXPEDITED)
        sock.bind(address)
    except OSError:
        sock.close()
        raise
    return sock


async def _attached(
    number: int, sockets: list[socket.socket], on_packet: Callable[[bytes, Address], None]
) -> MediaPort:
    loop, port, opened = asyncio.get_running_loop(), MediaPort(number, on_packet), list[asyncio.DatagramTransport]()
    try:
        for sock, protocol in zip(sockets, (port, asyncio.DatagramProtocol()), strict=True):
            transport, _ = await loop.create_datagram_endpoint(lambda protocol=protocol: protocol, sock=sock)  # type: ignore[misc]
            opened.append(transport)
    except BaseException:
        # The caller has gone meanwhile.
        for transport in opened:
            transport.close()
        for sock in sockets[len(opened) :]:
            sock.close()
        raise
    port.attach(*opened)
    return port
