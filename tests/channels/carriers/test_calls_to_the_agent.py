"""A caller from a carrier talks to the ordinary service: greeted, heard, stopped for, and known."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.fakes.model import says as model_says
from tests.support.carrier_api import CarrierApi
from tests.support.carrier_calls import CALLER, PUBLIC, SECRETS, CarrierCall, TwilioCall
from tests.support.carrier_kinds import CARRIERS
from tests.support.lines import serving, until
from tests.support.small_service import small_service, spoken
from voice_agent.config import ServerOptions
