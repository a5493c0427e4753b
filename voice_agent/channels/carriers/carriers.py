"""The carriers that are switched on, with the secrets that each needs."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
from collections.abc import Awaitable, Callable, Mapping

from voice_agent.channels.carriers.carrier import Carrier
from voice_agent.channels.carriers.channel import CarrierChannel
from voice_agent.channels.desk import CallDesk
from voice_agent.channels.outbound import OutboundDialer
from voice_agent.channels.streaming.connection import Receive, Scope, Send
from voice_agent.config import Channels
from voice_agent.diagnostics import RemediableError

CLOSE_S = 2.0
"""Limit on closing the connections to one carrier's API."""
ASGI = Callable[[Scope, Receive, Send], Awaitable[None]]


class Carriers:
    """Attributes:
    channels: By name, as in `Channels`.
    """

    def __init__(self, channels: Mapping[str, CarrierChannel]) -> None:
        self.channels = channels

    @property
    def webhooks(self) -> dict[str, ASGI]:
        """What answers the webhooks, by path. Each checks the carrier's signature itself, before anything else."""
        return {path: channel.webhook for channel in self.channels.values() for path in channel.carrier.hooks}

    @property
    def sockets(self) -> dict[str, ASGI]:
        """What answers the upgrades, by path. Each checks the carrier's signature itself, before anything else."""
        return {channel.carrier.stream_path: channel.media for channel in self.channels.values()}

    @property
    def dialers(self) -> dict[str, OutboundDialer]:
        """What places calls, by name."""
        return {name: channel.dialer for name, channel in self.channels.items()}

    async def aclose(self) -> None:
        """Close the connections to the carriers' APIs."""
        for channel in self.channels.values():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_S):
                    await channel.carrier.aclose()


def carriers_of(
    options: Channels, public_url: str | None, desk: CallDesk, environment: Mapping[str, str] = os.environ
) -> Carriers:
    """Return the carriers that are switched on.

    Raises:
        RemediableError: A secret, a package or `server.public_url` is missing: without them nobody could tell a
            carrier's request from a stranger's.
    """
    made: dict[str, CarrierChannel] = {}
    for name, make in _MAKERS.items():
        if getattr(options, name).enabled:
            if not public_url:
                raise RemediableError(
                    f"{name}: what a carrier signs holds the address at which it sees us.",
                    "Set server.public_url in integrations.yml, such as https://agent.example.com.",
                )
            made[name] = CarrierChannel(make(options, public_url, environment), desk, public_url)
    return Carriers(made)


def _secret(environment: Mapping[str, str], channel: str, variable: str) -> str:
    value = environment.get(variable, "").strip()
    if not value:
        raise RemediableError(
            f"{channel} needs {variable}: without it nobody could tell its requests from a stranger's.",
            f"Set {variable} in the environment, or switch channels.{channel} off.",
        )
    return value


def _package(channel: str, module: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError:
        raise RemediableError(
            f"{channel} needs the package {module.partition('.')[0]}, which checks its signatures.",
            'Install it with: pip install "voice-agent[carriers]"',
        ) from None


def _twilio(options: Channels, public_url: str, environment: Mapping[str, str]) -> Carrier:
    own = options.twilio
    secrets = [_secret(environment, "twilio", name) for name in (own.account_sid_env, own.auth_token_env)]
    _package("twilio", "twilio.request_validator")
    from voice_agent.channels.carriers.twilio_account import TwilioCarrier

    return TwilioCarrier(own, public_url, *secrets)


def _telnyx(options: Channels, public_url: str, environment: Mapping[str, str]) -> Carrier:
    own = options.telnyx
    secrets = [_secret(environment, "telnyx", name) for name in (own.public_key_env, own.api_key_env)]
    _package("telnyx", "cryptography")
    from voice_agent.channels.carriers.telnyx_account import TelnyxCarrier

    try:
        return TelnyxCarrier(own, public_url, *secrets)
    except ValueError:
        raise RemediableError(
            f"{own.public_key_env} is no public key.", "Give it as it stands in Telnyx's portal: 32 bytes in Base64."
        ) from None


def _plivo(options: Channels, public_url: str, environment: Mapping[str, str]) -> Carrier:
    own = options.plivo
    secrets = [_secret(environment, "plivo", name) for name in (own.auth_id_env, own.auth_token_env)]
    _package("plivo", "plivo.utils.signature_v3")
    from voice_agent.channels.carriers.plivo_account import PlivoCarrier

    return PlivoCarrier(own, public_url, *secrets)


def _vonage(options: Channels, public_url: str, environment: Mapping[str, str]) -> Carrier:
    own = options.vonage
    secret = _secret(environment, "vonage", own.signature_secret_env)
    application = _secret(environment, "vonage", own.application_id_env)
    _package("vonage", "vonage_jwt.verify_jwt")
    from voice_agent.channels.carriers.vonage_account import VonageCarrier

    return VonageCarrier(own, public_url, secret, application, environment.get(own.private_key_env, ""))


_MAKERS: Mapping[str, Callable[[Channels, str, Mapping[str, str]], Carrier]] = {
    "twilio": _twilio,
    "telnyx": _telnyx,
    "plivo": _plivo,
    "vonage": _vonage,
}
