"""The listening socket and its limits."""

from __future__ import annotations

import errno
import socket

from voice_agent.diagnostics import RemediableError

SEND_BUFFER_BYTES = 64 * 1024
"""Kernel buffer of a connection. Left to itself it grows to minutes of audio for a client that does not read."""
RECEIVE_BUFFER_BYTES = 24 * 1024
"""What a flood can make the server parse in one go. Enough for 48 kHz audio from the other side of the world."""
UNSENT_MS = 30_000
"""The kernel drops a connection whose data could not be sent for this long."""


def listen(host: str, port: int) -> socket.socket:
    """Open the listening socket.

    Raises:
        RemediableError: The port is taken, or the address is not this machine's.
    """
    try:
        family, kind, proto, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        sock = socket.socket(family, kind, proto)
    except OSError as fault:
        raise RemediableError(f"Cannot resolve {host!r}: {fault}.", "Check --host or server.host.") from None
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted connections inherit these.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if hasattr(socket, "TCP_USER_TIMEOUT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNSENT_MS)
        sock.bind(address)
        sock.listen(1024)
    except OSError as fault:
        sock.close()
        if fault.errno == errno.EADDRINUSE:
            remedy = "Stop the program that holds it, or choose another port with --port."
            raise RemediableError(f"Port {port} on {host} is in use.", remedy) from None
        raise RemediableError(
            f"Cannot listen on {host}:{port}: {fault.strerror}.", "Check --host and --port."
        ) from None
    return sock
