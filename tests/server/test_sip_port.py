"""The SIP port opens only for those who may call."""

from __future__ import annotations

import pytest

from tests.support.lines import RecordingDesk
from voice_agent.config import Channels
from voice_agent.diagnostics import RemediableError
from voice_agent.server.ports import open_ports


def opened(monkeypatch: pytest.MonkeyPatch, **sip: object) -> int:
    monkeypatch.setenv("DESK_PASSWORD", "secret")
    monkeypatch.delenv("MISSING", raising=False)
    desk = RecordingDesk()
    channels = Channels.model_validate({"sip": {"enabled": True, "port": 0, **sip}})
    return len(open_ports(channels, desk, desk.tokens))


def test_beyond_loopback_it_does_not_open_to_anybody(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RemediableError, match="anyone"):
        opened(monkeypatch, host="0.0.0.0")


@pytest.mark.parametrize(
    "more",
    [
        {"allow": ["192.0.2.0/24"]},
        {"callers": {"desk": "DESK_PASSWORD"}},
        {"registration": {"registrar": "127.0.0.1", "user": "a", "password_env": "DESK_PASSWORD"}},
    ],
)
def test_beyond_loopback_it_opens_to_those_who_are_named(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, object]
) -> None:
    assert opened(monkeypatch, host="0.0.0.0", **more) == 1


def test_a_password_that_is_not_there_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RemediableError, match="MISSING"):
        opened(monkeypatch, callers={"desk": "MISSING"})


@pytest.mark.parametrize("wrong", [{"rtp_ports": [20000, 10000]}, {"allow": ["nowhere"]}, {"public_address": "me"}])
def test_settings_that_cannot_be_are_named(monkeypatch: pytest.MonkeyPatch, wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        opened(monkeypatch, **wrong)
