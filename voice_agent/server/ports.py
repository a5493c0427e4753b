"""The ports beside HTTP: wires that come in by a listening socket of their own."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from voice_agent.channels.audiosocket import AudioSocketChannel
from voice_agent.channels.desk import CallDesk
from voice_agent.channels.outbound import OutboundDialer
from voice_agent.channels.tokens import CallTokens
from voice_agent.config import AudioSocketOptions, Channels, SipOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.security import is_loopback
from voice_agent.server.listening import listen

log = logging.getLogger(__name__)

LOOPBACK = (ip_network("127.0.0.0/8"), ip_network("::1/128"))


@dataclass(frozen=True)
class Port:
    """An open port.

    Attributes:
        number: Where it listens.
        run: Serves until cancelled. To be awaited once.
        dialer: Places calls, where the channel can, while `run` serves.
    """

    name: str
    number: int
    run: Callable[[], Coroutine[Any, Any, None]]
    dialer: OutboundDialer | None = None


def open_ports(options: Channels, desk: CallDesk, tokens: CallTokens) -> list[Port]:
    """Open the ports that the channels ask for.

    Raises:
        RemediableError: A port is taken, or would let anyone in.
    """
    ports = []
    if options.audiosocket.enabled:
        ports.append(_audiosocket(options.audiosocket, desk, tokens))
    if options.sip.enabled:
        ports.append(_sip(options.sip, desk))
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


def _sip(options: SipOptions, desk: CallDesk, environment: Mapping[str, str] = os.environ) -> Port:
    beyond = not is_loopback(options.host)
    if beyond and not (options.allow or options.callers or options.registration):
        raise RemediableError(
            f"SIP on {options.host} would take a call from anyone who reaches this machine.",
            "Say who may call with channels.sip.allow, callers or registration, or listen on 127.0.0.1.",
        )
    from voice_agent.channels.sip.agent import Credentials
    from voice_agent.channels.sip.channel import SipChannel
    from voice_agent.channels.sip.ports import bound
    from voice_agent.channels.sip.setup import SipSetup

    passwords = {user: _secret(variable, environment) for user, variable in options.callers.items()}
    credentials, registrar, expires_s = None, "", 300
    if (exchange := options.registration) is not None:
        registrar, expires_s = exchange.registrar, exchange.expires_s
        domain = exchange.domain or registrar
        credentials = Credentials(exchange.user, _secret(exchange.password_env, environment), domain)
    networks = tuple(ip_network(network) for network in options.allow)
    if not (networks or passwords or credentials):
        networks = LOOPBACK
    setup = SipSetup(
        codecs=options.codecs,
        host=options.host,
        rtp_ports=options.rtp_ports,
        public_address=options.public_address,
        networks=networks,
        passwords=passwords,
        registrar=registrar,
        credentials=credentials,
        expires_s=expires_s,
    )
    channel = SipChannel(desk, setup)
    try:
        sock = bound(options.host, options.port)
    except OSError as fault:
        raise RemediableError(
            f"Cannot listen for SIP on {options.host}:{options.port}: {fault.strerror}.",
            "Check channels.sip.host, and choose another channels.sip.port or --sip-port.",
        ) from None
    return Port("SIP", sock.getsockname()[1], lambda: channel.run(sock), channel)


def _secret(variable: str, environment: Mapping[str, str]) -> str:
    if not (value := environment.get(variable, "")):
        raise RemediableError(f"Environment variable {variable} is not set.", "Set it to the password used by SIP.")
    return value
