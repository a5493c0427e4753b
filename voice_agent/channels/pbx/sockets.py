"""The paths that exchanges connect to, each with what tells it from the others."""

from __future__ import annotations

import base64
import binascii
import logging
import os
import time
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl

from voice_agent.channels.desk import CallDesk
from voice_agent.channels.doorkeeper import Denial, Doorkeeper
from voice_agent.channels.messages import BadMessage
from voice_agent.channels.pbx import asterisk, freeswitch, genesys, jambonz
from voice_agent.channels.pbx.genesys_signature import BadSignature, SignatureCheck
from voice_agent.channels.streaming.channel import MediaSocketChannel
from voice_agent.channels.streaming.connection import Scope, headers_of
from voice_agent.channels.streaming.serializer import Serializer
from voice_agent.config import Channels, GenesysOptions
from voice_agent.diagnostics import RemediableError

log = logging.getLogger(__name__)

ASTERISK, FREESWITCH, JAMBONZ = "/asterisk/media", "/freeswitch/stream", "/jambonz/stream"
GENESYS = "/genesys/audiohook"
TOKEN_PATHS = frozenset({ASTERISK, FREESWITCH, JAMBONZ})
"""Where a call token is enough: the exchange can be told to send one."""


def pbx_sockets(
    desk: CallDesk, gate: Doorkeeper, options: Channels, environment: Mapping[str, str] = os.environ
) -> dict[str, MediaSocketChannel]:
    """Return the channels that are switched on, by path.

    Raises:
        RemediableError: Of Genesys's key and secret one is missing, or the secret is none.
    """
    sockets: dict[str, MediaSocketChannel] = {}
    if options.asterisk.enabled:
        sockets[ASTERISK] = MediaSocketChannel(
            desk, gate, lambda scope: asterisk.AsteriskSerializer(), subprotocols=(asterisk.SUBPROTOCOL,)
        )
    if options.freeswitch.enabled:
        sockets[FREESWITCH] = MediaSocketChannel(desk, gate, _freeswitch)
    if options.jambonz.enabled:
        sockets[JAMBONZ] = MediaSocketChannel(
            desk, gate, lambda scope: jambonz.JambonzSerializer(), subprotocols=(jambonz.SUBPROTOCOL,)
        )
    if options.genesys.enabled:
        sockets[GENESYS] = MediaSocketChannel(desk, _genesys_door(gate, options.genesys, environment), _genesys)
    return sockets


def _freeswitch(scope: Scope) -> Serializer:
    given = dict(parse_qsl(scope["query_string"].decode("latin-1")))
    rate = given.get("rate", str(freeswitch.RATES[0]))
    if rate not in map(str, freeswitch.RATES):
        raise BadMessage("bad_rate", f'"rate" must be one of {", ".join(map(str, freeswitch.RATES))}.')
    return freeswitch.FreeSwitchSerializer(int(rate))


def _genesys(scope: Scope) -> Serializer:
    headers = headers_of(scope)
    return genesys.GenesysSerializer(
        headers.get("audiohook-session-id", ""), headers.get("audiohook-organization-id", "")
    )


def _genesys_door(
    gate: Doorkeeper,
    options: GenesysOptions,
    environment: Mapping[str, str],
    wall_clock: Callable[[], float] = time.time,
) -> Doorkeeper:
    """Return who judges Genesys's upgrades: its signature where a secret is known, the service's own gate if not.

    The gate lets in nobody without the service's key beyond loopback, and Genesys cannot send that.
    """
    key_id, secret = environment.get(options.api_key_env, ""), environment.get(options.client_secret_env, "")
    if bool(key_id) != bool(secret):
        raise RemediableError(
            f"Of {options.api_key_env} and {options.client_secret_env} only one is set.",
            "Set both, to the API key and the client secret of the integration in Genesys Cloud.",
        )
    if not secret:
        return gate
    try:
        signatures = SignatureCheck(key_id, base64.b64decode(secret, validate=True))
    except binascii.Error:
        raise RemediableError(
            f"{options.client_secret_env} is not Base64.", "Give the client secret as it stands in Genesys Cloud."
        ) from None

    def door(scope: Scope) -> Denial | None:
        query = scope["query_string"].decode("latin-1")
        path = scope.get("raw_path", scope["path"].encode()).decode("latin-1").partition("?")[0]
        try:
            # When a signature was made is told in the time of day, on a clock of theirs.
            signatures.check(headers_of(scope), path + (f"?{query}" if query else ""), wall_clock())
        except BadSignature as fault:
            log.warning("Genesys's signature is no good: %s", fault)
            return Denial(403, "bad_signature", "The request is not signed as it must be.")
        return None

    return door
