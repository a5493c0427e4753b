"""The ports beside HTTP: wires that come in by a listening socket of their own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from voice_agent.channels.audiosocket import AudioSocketChannel
from voice_agent.channels.desk import CallDesk
from voice_agent.channels.tokens import CallTokens
from voice_agent.config import AudioSocketOptions, Channels
from voice_agent.diagnostics import RemediableError
from voice_agent.security import is_loopback
from voice_agent.server.listening import listen

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Port:
    """An open port.

    Attributes:
        number: Where it listens.
        run: Serves until cancelled. To be awaited once.
    """

    name: str
    number: int
    run: Callable[[], Coroutine[Any, Any, None]]


def open_ports(options: Channels, desk: CallDesk, tokens: CallTokens) -> list[Port]:
    """Open the ports that the channels ask for.

    Raises:
        RemediableError: A port is taken, or would let anyone in.
    """
    ports = []
    if options.audiosocket.enabled:
        ports.append(_audiosocket(options.audiosocket, desk, tokens))
    for port in ports:
        log.info("%s on port %d", port.name, port.number)
    return ports


def _audiosocket(options: AudioSocketOptions, desk: CallDesk, tokens: CallTokens) -> Port:
    beyond = not is_loopback(options.host)
    if beyond and options.registered_only is False:
        raise RemediableError(
            f"AudioSocket on {options.host} would take a call from anyone: the wire has no key.",
            "Leave channels.audiosocket.registered_only out and announce calls by POST /v1/calls, or listen on "
            "127.0.0.1.",
        )
    registered_only = beyond if options.registered_only is None else options.registered_only
    sock = listen(options.host, options.port)
    channel = AudioSocketChannel(desk, tokens, registered_only=registered_only)
    return Port("AudioSocket", sock.getsockname()[1], lambda: channel.run(sock))
