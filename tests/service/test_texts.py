from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tests.support.text_conversation import TextConversation
from tests.support.virtual_time import virtual_time
from voice_agent.channels.desk import CallRefused, TextHangUp, TextItem, TextPiece
from voice_agent.dialogue.reply import InputKind, ReplySink, Say, TurnStatus
from voice_agent.service import texts
from voice_agent.service.readiness import Readiness
from voice_agent.service.texts import TextConversations


class Desk:
    """The part under test, with every conversation it opened."""

    def __init__(self, *missing: str, on_call: str = "") -> None:
        self.opened: list[TextConversation] = []
        self.make: Callable[[str], TextConversation] = TextConversation
        self.readiness = Readiness(*missing)
        self.texts = TextConversations(self._open, self.readiness, lambda name: name == on_call)

    def _open(self, conversation_id: str, channel: str) -> TextConversation:
        self.opened.append(self.make(conversation_id))
        return self.opened[-1]


class Client:
    def __init__(self, gone_after: int = 99) -> None:
        self.items: list[TextItem] = []
        self.gone_after = gone_after

    async def deliver(self, item: TextItem) -> None:
        if len(self.items) == self.gone_after:
            raise ConnectionResetError
        self.items.append(item)


@virtual_time
async def test_a_turn_is_delivered_piece_by_piece_and_committed_as_heard() -> None:
    desk, client = Desk(), Client()
    outcome = await desk.texts.turn("c1", "/session_start", client.deliver, intent=True)
    assert client.items == [TextPiece(0, "Hello ", False), TextPiece(0, "there.", True)]
    assert outcome.status == "completed"
    [conversation] = desk.opened
    assert conversation.turns[0].kind is InputKind.INTENT
    assert (conversation.replies[0].heard, conversation.replies[0].unheard) == ("Hello there.", "")


@virtual_time
async def test_messages_of_a_reply_are_recorded_apart() -> None:
    desk = Desk()

    class Two(TextConversation):
        async def _say(self, sink: ReplySink) -> None:
            for number, text in enumerate(("Welcome.", "Your balance", " is 4.")):
                sink.emit(Say(min(number, 1), text, end=number != 1))

    desk.make = Two
    await desk.texts.turn("c1", "hello", Client().deliver)
    assert desk.opened[0].replies[0].heard == "Welcome. Your balance is 4."


@virtual_time
async def test_where_the_time_of_a_turn_went_is_recorded_before_its_reply() -> None:
    desk = Desk()
    await desk.texts.turn("c1", "hello", Client().deliver)
    [(kind, times)] = desk.opened[0].notes
    assert kind == "turn_timeline"
    assert 0 == times["endpoint"] <= times["first_text"] <= times["last_text"] <= times["teardown"]


@virtual_time
async def test_a_command_inside_a_sentence_is_only_text() -> None:
    desk = Desk()
    await desk.texts.turn("c1", "/session_start", Client().deliver)
    assert desk.opened[0].turns[0].kind is InputKind.TEXT


@virtual_time
async def test_messages_of_one_conversation_wait_for_each_other_in_order() -> None:
    desk = Desk()
    async with asyncio.TaskGroup() as group:
        for text in ("one", "two", "three"):
            group.create_task(desk.texts.turn("c1", text, Client().deliver))
    assert [turn.text for turn in desk.opened[0].turns] == ["one", "two", "three"]


@virtual_time
async def test_different_conversations_run_side_by_side() -> None:
    desk, loop = Desk(), asyncio.get_running_loop()
    started = loop.time()
    async with asyncio.TaskGroup() as group:
        for name in ("a", "b", "c"):
            group.create_task(desk.texts.turn(name, "hi", Client().deliver))
    assert loop.time() - started == pytest.approx(2.0)


@virtual_time
async def test_a_client_that_goes_cancels_its_turn_and_only_delivered_text_was_heard() -> None:
    desk = Desk()
    task = asyncio.ensure_future(desk.texts.turn("c1", "hi", Client().deliver))
    await asyncio.sleep(1.5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    [conversation] = desk.opened
    assert conversation.results == [TurnStatus.CANCELLED]
    assert conversation.replies[0].heard == "Hello "


@virtual_time
async def test_a_delivery_that_fails_cancels_the_turn_and_its_fault_goes_on() -> None:
    desk = Desk()
    with pytest.raises(ConnectionResetError):
        await desk.texts.turn("c1", "hi", Client(gone_after=1).deliver)
    [conversation] = desk.opened
    assert (conversation.replies[0].heard, conversation.replies[0].unheard) == ("Hello ", "there.")
    client = Client()
    await desk.texts.turn("c1", "again", client.deliver)
    assert len(client.items) == 2


@virtual_time
async def test_a_hang_up_ends_the_conversation_and_the_next_message_opens_it_anew() -> None:
    desk, client = Desk(), Client()
    async with asyncio.TaskGroup() as group:
        group.create_task(desk.texts.turn("c1", "bye", client.deliver))
        group.create_task(desk.texts.turn("c1", "me again", Client().deliver))
    assert client.items[-1] == TextHangUp("completed")
    first, second = desk.opened
    assert first.closed == ["completed"]
    assert [turn.text for turn in second.turns] == ["me again"]


@virtual_time
async def test_too_many_waiting_messages_are_refused() -> None:
    desk = Desk()
    async with asyncio.TaskGroup() as group:
        for number in range(texts.MAX_TURNS):
            group.create_task(desk.texts.turn("c1", str(number), Client().deliver))
        await asyncio.sleep(0)
        with pytest.raises(CallRefused, match="Too many messages"):
            await desk.texts.turn("c1", "one more", Client().deliver)


@virtual_time
async def test_the_longest_idle_conversation_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MAX_OPEN", 2)
    desk = Desk()
    for name in ("a", "b", "c"):
        await desk.texts.turn(name, "hi", Client().deliver)
    assert len(desk.texts) == 2
    assert [c.closed for c in desk.opened] == [["disconnected"], [], []]


@virtual_time
async def test_idle_conversations_are_closed() -> None:
    desk = Desk()
    await desk.texts.turn("a", "hi", Client().deliver)
    await asyncio.sleep(texts.IDLE_S - 1)
    await desk.texts.close_idle()
    assert len(desk.texts) == 1
    await asyncio.sleep(2)
    await desk.texts.close_idle()
    assert desk.opened[0].closed == ["disconnected"]


@virtual_time
async def test_a_conversation_on_a_call_is_left_alone() -> None:
    with pytest.raises(CallRefused, match="on a call"):
        await Desk(on_call="c1").texts.turn("c1", "hi", Client().deliver)


@virtual_time
async def test_a_conversation_moves_to_a_call_between_turns_but_not_within_one() -> None:
    desk = Desk()
    async with asyncio.TaskGroup() as group:
        group.create_task(desk.texts.turn("c1", "hi", Client().deliver))
        await asyncio.sleep(0.5)
        with pytest.raises(CallRefused, match="text turn"):
            await desk.texts.release("c1")
    await desk.texts.release("c1")
    assert desk.opened[0].closed == ["disconnected"]


@virtual_time
async def test_nothing_is_answered_before_the_service_is_ready() -> None:
    with pytest.raises(CallRefused, match="speech to text"):
        await Desk("speech to text").texts.turn("c1", "hi", Client().deliver)


@virtual_time
async def test_closing_closes_every_conversation() -> None:
    desk = Desk()
    for name in ("a", "b"):
        await desk.texts.turn(name, "hi", Client().deliver)
    await desk.texts.aclose()
    assert [c.closed for c in desk.opened] == [["shutdown"], ["shutdown"]]


class Unclosable(TextConversation):
    """Fails to close, or takes for ever."""

    def __init__(self, id: str, seconds: float = 0.0) -> None:
        super().__init__(id)
        self._seconds = seconds

    async def close(self, outcome: str) -> None:
        await super().close(outcome)
        await asyncio.sleep(self._seconds)
        raise OSError("the store is gone")


@virtual_time
async def test_a_conversation_that_cannot_be_closed_stops_neither_the_service_nor_the_others() -> None:
    desk = Desk()
    desk.make = Unclosable
    for name in ("a", "b"):
        await desk.texts.turn(name, "hi", Client().deliver)
    await asyncio.sleep(texts.IDLE_S + 1)
    await desk.texts.close_idle()
    assert [c.closed for c in desk.opened] == [["disconnected"], ["disconnected"]]
    assert len(desk.texts) == 0


@virtual_time
async def test_closing_takes_as_long_as_the_slowest_conversation_may_take_however_many_there_are() -> None:
    desk = Desk()
    desk.make = lambda name: Unclosable(name, seconds=3600)
    for number in range(20):
        await desk.texts.turn(str(number), "hi", Client().deliver)
    began = asyncio.get_running_loop().time()
    await desk.texts.aclose()
    assert asyncio.get_running_loop().time() - began <= texts.CLOSE_S
    assert all(c.closed == ["shutdown"] for c in desk.opened)
