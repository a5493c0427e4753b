"""Genesys's signature: the published vectors hold, and nothing that differs from them does."""

from __future__ import annotations

import base64

import pytest
from websockets.exceptions import InvalidStatus

from tests.channels.pbx.test_pbx_contract import ALL
from tests.support.exchanges import Genesys
from tests.support.genesys_signing import GENESYS_KEYS, KEY_ID, SECRET, signed_headers
from tests.support.lines import RecordingService, serving
from voice_agent.channels.pbx.genesys_signature import REQUIRED, BadSignature, SignatureCheck, verify
from voice_agent.channels.pbx.sockets import pbx_sockets
from voice_agent.diagnostics import RemediableError

TARGET = "/api/v1/voicebiometrics/ws"
VECTOR_SECRET = base64.b64decode("TXlTdXBlclNlY3JldEtleVRlbGxOby0xITJAMyM0JDU=")
VECTOR_KEY = "SGVsbG8sIEkgYW0gdGhlIEFQSSBrZXkh"
CREATED = 1641013200
VECTOR = {
    "host": "audiohook.example.com",
    "audiohook-organization-id": "d7934305-0972-4844-938e-9060eef73d05",
    "audiohook-session-id": "30b0e395-84d3-4570-ac13-9a62d8f514c0",
    "audiohook-correlation-id": "e160e428-53e2-487c-977d-96989bf5c99d",
    "x-api-key": VECTOR_KEY,
    "signature": "sig1=:NZBwyBHRRyRoeLqy1IzOa9VYBuI8TgMFt2GRDkDuJh4=:",
    "signature-input": (
        'sig1=("@request-target" "@authority" "audiohook-organization-id" "audiohook-session-id" '
        f'"audiohook-correlation-id" "x-api-key");keyid="{VECTOR_KEY}";nonce="VGhpc0lzQVVuaXF1ZU5vbmNl";'
        f'alg="hmac-sha256";created={CREATED};expires=3282026430'
    ),
}


def test_the_example_of_the_audiohook_documentation_is_verified() -> None:
    assert verify(VECTOR, TARGET, VECTOR_SECRET, required=REQUIRED)["keyid"] == VECTOR_KEY


def test_the_example_of_the_draft_is_verified() -> None:
    secret = "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="
    headers = {
        "host": "example.com",
        "date": "Tue, 20 Apr 2021 02:07:55 GMT",
        "content-type": "application/json",
        "signature-input": 'sig-b25=("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"',
        "signature": "sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:",
    }
    assert verify(headers, "/foo", base64.b64decode(secret))["created"] == "1618884473"


@pytest.mark.parametrize(
    "change",
    [
        {"host": "evil.example.com"},
        {"audiohook-session-id": "30b0e395-84d3-4570-ac13-9a62d8f514c1"},
        {"x-api-key": "another"},
        {"signature": "sig1=:AAAA:"},
        {"signature": "sig2=:NZBwyBHRRyRoeLqy1IzOa9VYBuI8TgMFt2GRDkDuJh4=:"},
        {"signature": ""},
        {"signature-input": ""},
        {"signature-input": VECTOR["signature-input"].replace('"@authority" ', "")},
        {"signature-input": VECTOR["signature-input"].replace("sha256", "sha512")},
        {"signature-input": VECTOR["signature-input"] + ', sig2=("x-api-key");created=1'},
        {"signature-input": VECTOR["signature-input"] + ';keyid="another"'},
    ],
)
def test_whatever_differs_from_it_is_refused(change: dict[str, str]) -> None:
    with pytest.raises(BadSignature):
        verify(VECTOR | change, TARGET, VECTOR_SECRET, required=REQUIRED)


def test_another_path_or_secret_is_refused() -> None:
    for target, secret in ((TARGET + "?x=1", VECTOR_SECRET), (TARGET, b"another"), (TARGET, b"")):
        with pytest.raises(BadSignature):
            verify(VECTOR, target, secret, required=REQUIRED)


def test_a_signature_is_good_once_and_for_some_seconds() -> None:
    check = SignatureCheck(VECTOR_KEY, VECTOR_SECRET)
    for late_s in (-4.0, 11.0):
        with pytest.raises(BadSignature, match="just now"):
            check.check(VECTOR, TARGET, CREATED + late_s)
    # The example's nonce is as short as one may be in bytes, but not in characters.
    assert len("VGhpc0lzQVVuaXF1ZU5vbmNl") >= 22
    check.check(VECTOR, TARGET, CREATED + 1.0)
    with pytest.raises(BadSignature, match="before"):
        check.check(VECTOR, TARGET, CREATED + 2.0)


@pytest.mark.parametrize("wrong", [{"secret": b"wrong"}, {"key_id": "another-key"}, {"age_s": 60.0}, {"target": "/ws"}])
async def test_who_does_not_sign_as_genesys_does_is_refused_before_a_call_exists(
    wrong: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in GENESYS_KEYS.items():
        monkeypatch.setenv(name, value)
    service = RecordingService(channels=ALL)
    async with serving(service, channels=ALL) as address:
        good = signed_headers(address)
        for headers in ({}, {"X-API-KEY": KEY_ID}, signed_headers(address, **wrong)):  # type: ignore[arg-type]
            with pytest.raises(InvalidStatus) as caught:
                await Genesys.dial(address, additional_headers=headers)
            assert caught.value.response.status_code == 403
        first = await Genesys.dial(address, additional_headers=good)
        await service.calls.next_line()
        with pytest.raises(InvalidStatus):
            await Genesys.dial(address, additional_headers=good)
        await first.close()
        assert len(service.calls.lines) == 1


def test_half_a_configuration_is_an_error_that_says_so() -> None:
    for environment in ({"GENESYS_API_KEY": "k"}, {"GENESYS_API_KEY": "k", "GENESYS_CLIENT_SECRET": "no base64!"}):
        with pytest.raises(RemediableError, match="GENESYS_CLIENT_SECRET"):
            pbx_sockets(RecordingService().calls, lambda scope: None, ALL, environment)
    assert SECRET
