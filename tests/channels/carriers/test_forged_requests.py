"""What nobody has signed, in every shape: refused each time, and never a fault of ours."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.carrier_calls import PUBLIC, SECRETS
from tests.support.carrier_kinds import CARRIERS, all_carriers
from tests.support.carrier_lines import CarrierCall
from tests.support.lines import RecordingDesk
from tests.support.telnyx_calls import TelnyxCall
from voice_agent.channels.carriers.carrier import Unsigned
from voice_agent.channels.carriers.carriers import Carriers, carriers_of
from voice_agent.channels.carriers.request import CarrierRequest

PROOFS = (
    b"x-twilio-signature",
    b"telnyx-signature-ed25519",
    b"telnyx-timestamp",
    b"x-plivo-signature-v3",
    b"x-plivo-signature-v3-nonce",
    b"authorization",
    b"x-telnyx-streaming-auth-token",
    b"content-type",
)
VALUES = st.one_of(
    st.binary(max_size=60),
    st.sampled_from([b"Bearer ", b"Bearer a.b.c", b"Bearer e30.e30.e30", b"\xe9", b"1", b"=", b"AAAA", b"," * 9]),
)


@pytest.fixture(scope="module")
def carriers() -> Carriers:
    return carriers_of(all_carriers("http://127.0.0.1:9"), PUBLIC, RecordingDesk(), SECRETS)


async def answered(app: Any, scope: dict[str, Any], body: bytes) -> int:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(scope, receive, send)
    return int(sent[0]["status"])


@pytest.mark.parametrize("carried", CARRIERS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    headers=st.dictionaries(st.sampled_from(PROOFS), VALUES),
    body=st.binary(max_size=80),
    query=st.binary(max_size=40),
)
async def test_no_shape_of_a_forged_request_is_answered_or_breaks_anything(
    carriers: Carriers, carried: type[CarrierCall], headers: dict[bytes, bytes], body: bytes, query: bytes
) -> None:
    channel = carriers.channels[carried.channel]
    scope = {"headers": list(headers.items()), "query_string": query}
    for path, hook in carriers.webhooks.items():
        if path in channel.carrier.hooks:
            asked = {**scope, "type": "http", "method": "POST", "path": path}
            assert await answered(hook, asked, body) in (400, 403)
    assert channel.judge({**scope, "type": "websocket", "path": channel.carrier.stream_path}) is not None
    assert len(channel.pending) == 0


def test_a_signature_written_in_another_way_is_no_other_signature(carriers: Carriers) -> None:
    carrier = carriers.channels["telnyx"].carrier
    body = TelnyxCall.webhook("call.initiated", "v3:1", direction="incoming")
    headers = TelnyxCall.signed(body, None)
    shown, now = headers["telnyx-signature-ed25519"], float(headers["telnyx-timestamp"])
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    other = shown[:-3] + letters[letters.index(shown[-3]) + 1] + "=="
    assert (other != shown, base64.b64decode(other)) == (True, base64.b64decode(shown))
    carrier.check(CarrierRequest("POST", PUBLIC, "/", {}, headers, body), now)
    with pytest.raises(Unsigned, match="shown before"):
        again = {**headers, "telnyx-signature-ed25519": other}
        carrier.check(CarrierRequest("POST", PUBLIC, "/", {}, again, body), now)
