"""All simulated carriers, for tests that hold for each."""

from __future__ import annotations

from tests.support.carrier_lines import CALLED, CALLER, PUBLIC, SECRETS, CarrierCall, HungUpOn, post
from tests.support.plivo_calls import PlivoCall
from tests.support.telnyx_calls import TelnyxCall
from tests.support.twilio_calls import TwilioCall, twilio_signature
from tests.support.vonage_calls import VonageCall

__all__ = [
    "CALLED",
    "CALLER",
    "PUBLIC",
    "SECRETS",
    "CarrierCall",
    "HungUpOn",
    "PlivoCall",
    "TelnyxCall",
    "TwilioCall",
    "VonageCall",
    "post",
    "twilio_signature",
]
