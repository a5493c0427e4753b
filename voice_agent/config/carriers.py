"""Calls that telephone carriers stream to us, and calls that are placed through them."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from voice_agent.config.channel import ChannelOptions

_URL = r"^https?://[^\s/?#]+(/[^\s?#]*)?$"
_NUMBER = r"^(\+[1-9]\d{2,14})?$"


class CarrierOptions(ChannelOptions):
    """What all carriers have. Every request of theirs must be signed; `server.public_url` says what they sign."""

    enabled: bool = False
    """Whether callers may come in by it."""
    from_number: str = Field("", pattern=_NUMBER)
    """Number that is shown to whoever is called, in international form; calls are placed only with one."""
    detect_machines: bool = False
    """Whether the carrier finds out if a machine has answered a call that we placed. The greeting does not wait."""


class TwilioOptions(CarrierOptions):
    """Calls from Twilio, on ``/twilio/voice`` and ``/twilio/stream``."""

    account_sid_env: str = "TWILIO_ACCOUNT_SID"
    """Environment variable with the account's SID."""
    auth_token_env: str = "TWILIO_AUTH_TOKEN"
    """Environment variable with the account's auth token, which signs its requests and ours."""
    api_url: str = Field("https://api.twilio.com", pattern=_URL)
    """Where its REST API is."""


class TelnyxOptions(CarrierOptions):
    """Calls from Telnyx (Call Control), on ``/telnyx/events`` and ``/telnyx/stream``."""

    public_key_env: str = "TELNYX_PUBLIC_KEY"
    """Environment variable with the account's public key, in Base64, against which its webhooks are checked."""
    api_key_env: str = "TELNYX_API_KEY"
    """Environment variable with the key of its REST API, which answers, hangs up and transfers."""
    codec: Literal["PCMU", "PCMA", "L16"] = "PCMU"
    """How audio is streamed both ways: G.711 as of telephones, or L16 at 16 kHz."""
    connection_id: str = Field("", pattern=r"^\d{0,30}$")
    """The Voice API application that calls are placed by."""
    api_url: str = Field("https://api.telnyx.com", pattern=_URL)
    """Where its REST API is."""


class PlivoOptions(CarrierOptions):
    """Calls from Plivo, on ``/plivo/answer`` and ``/plivo/stream``."""

    auth_id_env: str = "PLIVO_AUTH_ID"
    """Environment variable with the account's auth id."""
    auth_token_env: str = "PLIVO_AUTH_TOKEN"
    """Environment variable with the account's auth token, which signs its requests and ours."""
    api_url: str = Field("https://api.plivo.com", pattern=_URL)
    """Where its REST API is."""


class VonageOptions(CarrierOptions):
    """Calls from Vonage, on ``/vonage/answer`` and ``/vonage/stream``."""

    signature_secret_env: str = "VONAGE_SIGNATURE_SECRET"
    """Environment variable with the account's signature secret, with which its webhooks are signed."""
    application_id_env: str = "VONAGE_APPLICATION_ID"
    """Environment variable with the application's id."""
    private_key_env: str = "VONAGE_PRIVATE_KEY"
    """Environment variable with the application's private key (PEM); only transfers and calls that we place need it."""
    api_url: str = Field("https://api.nexmo.com", pattern=_URL)
    """Where its REST API is."""
