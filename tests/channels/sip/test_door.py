"""Who may call by SIP, and how telephones prove who they are."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from voice_agent.channels.sip.digest import Verifier, authorization, parts
from voice_agent.channels.sip.door import Door
from voice_agent.channels.sip.message import Headers, Request

SOURCE = "198.51.100.7"


def invite(*more: tuple[str, str], call_id: str = "c") -> Request:
    lines = [
        ("via", "SIP/2.0/UDP 198.51.100.7;branch=z9hG4bK1"),
        ("from", "<sip:a@example.com>;tag=a"),
        ("to", "<sip:b@example.com>"),
        ("call-id", call_id),
        ("cseq", "1 INVITE"),
        *more,
    ]
    return Request(Headers(lines), b"", "INVITE", "sip:b@example.com")


def proof(verifier: Verifier, password: str, now: float = 100.0, **of: str) -> tuple[str, str]:
    request = invite()
    response = request.respond(401, *verifier.challenges(request, SOURCE, now))
    header = authorization(response, request, of.get("user", "desk"), password, "nonce")
    assert header is not None
    return header


@pytest.fixture
def verifier() -> Verifier:
    return Verifier({"desk": "secret"}, b"k" * 32)


def test_the_right_password_admits_and_the_stronger_algorithm_is_taken(verifier: Verifier) -> None:
    header = proof(verifier, "secret")
    assert parts(header[1])["algorithm"] == "SHA-256"
    assert verifier.admits(invite(header), SOURCE, 101.0)


@pytest.mark.parametrize(
    ("header", "source", "call_id", "now"),
    [
        ("wrong password", SOURCE, "c", 101.0),
        ("wrong user", SOURCE, "c", 101.0),
        ("right", "203.0.113.1", "c", 101.0),
        ("right", SOURCE, "another call", 101.0),
        ("right", SOURCE, "c", 131.0),
        ("right", SOURCE, "c", 99.0),
    ],
)
def test_nothing_else_admits(verifier: Verifier, header: str, source: str, call_id: str, now: float) -> None:
    shown = {
        "wrong password": lambda: proof(verifier, "guess"),
        "wrong user": lambda: proof(verifier, "secret", user="door"),
        "right": lambda: proof(verifier, "secret"),
    }[header]()
    assert not verifier.admits(invite(shown, call_id=call_id), source, now)


def test_a_proof_for_another_server_or_one_made_up_admits_nobody(verifier: Verifier) -> None:
    other = proof(Verifier({"desk": "secret"}, b"x" * 32), "secret")
    assert not verifier.admits(invite(other), SOURCE, 101.0)
    for value in (
        "Digest",
        "Basic abc",
        'Digest username="desk"',
        'Digest nonce="", response=""',
        "Digest " + "x=y," * 900,
    ):
        assert not verifier.admits(invite(("authorization", value)), SOURCE, 101.0)


def test_without_networks_and_passwords_nobody_comes_in() -> None:
    refusal = Door((), None).judge(invite(), "127.0.0.1", 0.0)
    assert refusal is not None
    assert refusal.status == 403


def test_networks_and_the_exchange_are_known_and_others_are_asked(verifier: Verifier) -> None:
    door = Door((ip_network("192.0.2.0/24"),), verifier)
    assert door.judge(invite(), "192.0.2.77", 0.0) is None
    assert door.judge(invite(), "203.0.113.9", 0.0) is not None
    door.exchanges = frozenset({"203.0.113.9"})
    assert door.judge(invite(), "203.0.113.9", 0.0) is None
    refusal = door.judge(invite(), SOURCE, 0.0)
    assert refusal is not None
    assert refusal.status == 401
    assert [name for name, _ in refusal.headers] == ["www-authenticate"] * 2
