"""All carriers, for tests that hold for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.support.carrier_calls import CarrierCall, TwilioCall
from voice_agent.channels.carriers.twilio import TwilioSerializer
from voice_agent.channels.streaming.serializer import Serializer
from voice_agent.config import Channels, TwilioOptions

CARRIERS: tuple[type[CarrierCall], ...] = (TwilioCall,)
ALL = Channels(twilio=TwilioOptions(enabled=True, from_number="+15550000"))
SERIALIZERS: Mapping[str, Callable[[], Serializer]] = {"twilio": TwilioSerializer}
