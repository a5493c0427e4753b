"""All carriers, for tests that hold for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.carrier_calls import CarrierCall, PlivoCall, TelnyxCall, TwilioCall, VonageCall
from voice_agent.channels.carriers.plivo import PlivoSerializer
from voice_agent.channels.carriers.telnyx import TelnyxSerializer
from voice_agent.channels.carriers.twilio import TwilioSerializer
from voice_agent.channels.carriers.vonage import VonageSerializer
from voice_agent.channels.streaming.serializer import Serializer
from voice_agent.config import Channels, OutboundOptions, PlivoOptions, TelnyxOptions, TwilioOptions, VonageOptions

CARRIERS: tuple[type[CarrierCall], ...] = (TwilioCall, TelnyxCall, PlivoCall, VonageCall)
SERIALIZERS: Mapping[str, Callable[[], Serializer]] = {
    "twilio": TwilioSerializer,
    "telnyx": TelnyxSerializer,
    "plivo": PlivoSerializer,
    "vonage": VonageSerializer,
}


def all_carriers(api_url: str, *, detect_machines: bool = False) -> Channels:
    """Every carrier switched on, with its API at ``api_url``."""
    own = {
        "enabled": True,
        "api_url": api_url,
        "from_number": "+15550000",
        "detect_machines": detect_machines,
    }
    return Channels(
        twilio=TwilioOptions.model_validate(own),
        telnyx=TelnyxOptions.model_validate({**own, "connection_id": "1494404757140276705"}),
        plivo=PlivoOptions.model_validate(own),
        vonage=VonageOptions.model_validate(own),
        outbound=OutboundOptions(allowed_prefixes=("+1555",), per_minute=6000),
    )
