"""What an exchange says of its caller reaches the call by name, unless no more than a token let the exchange in."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from tests.channels.pbx.test_pbx_contract import ALL, KEY
from tests.support.exchanges import Asterisk, Exchange, FreeSwitch, Genesys, Jambonz
from tests.support.lines import RecordingService, serving, until
from tests.support.small_service import small_service
from voice_agent.channels.streaming.facts import facts_of
from voice_agent.channels.streaming.serializer import Started

CALLER, CALLED = "+15550100", "+15550199"


class Dialling(Asterisk):
    variables: ClassVar[Mapping[str, str]] = {"caller_number": CALLER, "called_number": CALLED, "plan": "gold"}


class PlainDialling(Asterisk):
    """Without JSON there are no variables; the dial string adds them to the address."""

    json = False


QUERY = f"?caller_number=%2B{CALLER[1:]}&called_number=%2B{CALLED[1:]}&plan=gold"


def test_what_was_named_goes_before_what_the_exchange_says_and_nothing_empty_is_told() -> None:
    started = Started("c1", "100", "", {"caller_number": CALLER, "plan": "gold", "note": "", "token": "call_x"})
    assert facts_of(started, {"plan": "silver", "conversation": "c", "rate": "8000"}) == {
        "caller_number": CALLER,
        "plan": "gold",
    }
    many = facts_of(Started("c1", CALLER), {f"n{n}": "x" * 5000 for n in range(500)})
    assert (len(many), max(map(len, many.values()))) == (65, 1000)


@pytest.mark.parametrize(
    ("kind", "query", "more"),
    [
        (Dialling, "", {"plan": "gold"}),
        (PlainDialling, QUERY, {"plan": "gold"}),
        (FreeSwitch, QUERY.replace("&plan=gold", ""), {}),
        (Jambonz, "", {"plan": "gold"}),
        (Genesys, "", {"plan": "gold"}),
    ],
)
async def test_numbers_and_named_values_reach_the_call_and_stand_in_no_log(
    kind: type[Exchange], query: str, more: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    service = RecordingService(channels=ALL)
    async with serving(service, channels=ALL) as address:
        exchange = await kind.dial(address, query)
        line = await service.calls.next_line()
        wanted = {"caller_number": CALLER, "called_number": CALLED, **more}
        assert line.request.facts.items() >= wanted.items()
        assert CALLER not in repr(line.request)
        await exchange.close()
        await until(line.ended.done)
    heard = [r for r in caplog.records if r.name.startswith("voice_agent") or r.levelno >= logging.WARNING]
    assert "5550" not in "\n".join(str(vars(record)) for record in heard)


async def test_who_came_with_no_more_than_a_call_token_says_nothing_beyond_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VOICE_AGENT_API_KEY", KEY)
    service = RecordingService(channels=ALL)
    token, grant = service.tokens.issue(uuid.uuid4().hex, {"plan": "silver"}, 60)
    async with serving(service, channels=ALL) as address:
        exchange = await Jambonz.dial(address, f"?token={token}&verified=yes")
        line = await service.calls.next_line()
        assert (line.request.grant, line.request.facts) == (grant, {})
        await exchange.close()
        await until(line.ended.done)


async def test_they_fill_fields_that_the_project_asks_for_and_never_say_who_somebody_is(tmp_path: Path) -> None:
    memory = "caller_number: {type: text, seed: true}\nplan: {type: text, seed: true}\nsecret: {type: text}\n"
    service = small_service(tmp_path, files={"memory.yml": memory}, settings="channels: {jambonz: {enabled: true}}\n")
    async with serving(service, channels=service.channels) as address:
        await until(lambda: not service.missing)
        exchange = await Jambonz.dial(address, "?secret=x&user_id=somebody-else&conversation=c1")
        await until(lambda: service.calls.registry.active)
        # Whoever hangs up before the conversation is open has said nothing of themselves.
        await until(lambda: exchange.audio)
        await exchange.close()
        await until(lambda: not service.calls.registry.active)
        events = [dict(event) for event in await service.store.events("c1")]
    written = str([event["memory_set"] for event in events if "memory_set" in event])
    assert CALLER in written and "gold" in written
    assert "secret" not in written
    assert "somebody-else" not in str(events)
