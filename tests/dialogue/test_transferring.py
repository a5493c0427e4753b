"""Skills and models name a destination; what comes of it is a result, and the agent goes on when it failed."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.fakes.sink import CallSink
from tests.support.dialogue_projects import Caller, block, caller, skill, write_project
from tests.support.virtual_time import virtual_time
from voice_agent.config_files import load_config
from voice_agent.diagnostics import ProjectError
from voice_agent.dialogue.agent import Agent
from voice_agent.dialogue.cancellation import CancelReason
from voice_agent.dialogue.reply import TurnResult, TurnStatus, UserInput
from voice_agent.transfers import TransferReason, TransferTarget

NUMBER = "+15550100"
DESTINATIONS = f"""
transfers:
  billing: {{to: "{NUMBER}", description: Questions about bills.}}
  support: {{to: "sip:desk@example.com", mode: warm, utter: utter_wait, ring_timeout_s: 12}}
"""
THROUGH = """
- id: through
  execute_tool: transfer
  args: {destination: billing}
- id: sorry
  action: utter_sorry
"""
FILES = {
    "integrations.yml": DESTINATIONS,
    "skills/person/skill.md": skill(block(THROUGH), description="A person."),
    "responses.yml": "responses: {utter_wait: Please wait., utter_sorry: I could not reach anybody.}\n",
}
ANNOUNCEMENT = "One moment, I am putting you through."
START = tool_call("start_skill", skill="person")


def bench_of(root: Path, *script: Any, **files: str) -> Caller:
    return caller(root, {**FILES, **files}, script, channel="websocket")


async def says(bench: Caller, text: str, sink: CallSink, turn_id: str = "t0") -> TurnResult:
    result = await bench.conversation.turn(UserInput(text), turn_id=turn_id, sink=sink, cancel=sink.cancel)
    bench.conversation.commit_reply(turn_id, sink.heard())
    return result


def transfers_of(bench: Caller) -> list[tuple[bool, Any]]:
    done = [e for e in bench.events("tool_executed") if e["tool"] == "transfer"]
    return [(e["success"], json.loads(e["result_json"]).get("reason")) for e in done]


async def test_a_model_that_names_a_destination_ends_its_part_of_the_call(tmp_path: Path) -> None:
    bench, sink = bench_of(tmp_path, tool_call("transfer", destination="support")), CallSink(TransferReason.COMPLETED)
    await says(bench, "a person please", sink)
    assert sink.messages == ["Please wait."]
    assert sink.targets == [TransferTarget("support", "sip:desk@example.com", warm=True, timeout_s=12)]
    assert transfers_of(bench) == [(True, None)]
    assert not sink.hung_up
    assert len(bench.model.requests) == 1


async def test_a_model_is_told_why_it_failed_and_goes_on_talking(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, tool_call("transfer", destination="billing"), "They are busy just now.")
    sink = CallSink(TransferReason.BUSY)
    await says(bench, "a person please", sink)
    assert sink.messages == [ANNOUNCEMENT, "They are busy just now."]
    result = bench.model.requests[1].messages[-1]
    assert (result.role, result.name, json.loads(result.content)["reason"]) == ("tool", "transfer", "busy")
    assert transfers_of(bench) == [(False, "busy")]


async def test_words_of_the_model_are_announcement_enough(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, ["I will get a colleague. ", tool_call("transfer", destination="billing")], "Sorry.")
    sink = CallSink()
    await says(bench, "a person please", sink)
    assert sink.messages == ["I will get a colleague. ", "Sorry."]


async def test_a_model_sees_names_and_what_they_are_for_and_never_a_number(tmp_path: Path) -> None:
    bench, sink = bench_of(tmp_path, tool_call("transfer", destination="billing"), "Sorry.", "Yes?"), CallSink()
    await says(bench, "a person please", sink)
    await says(bench, "hello", CallSink(), "t1")
    spec = next(tool for tool in bench.model.requests[0].tools if tool.name == "transfer")
    assert spec.parameters["properties"]["destination"]["enum"] == ["billing", "support"]
    assert "billing: Questions about bills." in spec.parameters["properties"]["destination"]["description"]
    seen = [str(request) for request in bench.model.requests] + [json.dumps(bench.conversation.events)]
    assert not any(secret in text for text in seen for secret in (NUMBER, "15550100", "desk@example.com"))


@pytest.mark.parametrize("given", ["accounts", NUMBER, "", "sip:me@evil.example"])
async def test_a_destination_that_is_not_configured_is_refused(tmp_path: Path, given: str) -> None:
    bench, sink = bench_of(tmp_path, tool_call("transfer", destination=given), "Sorry."), CallSink()
    await says(bench, "put me through", sink)
    assert sink.targets == []
    assert sink.messages == ["Sorry."]
    assert transfers_of(bench) == []


async def test_it_is_offered_only_with_destinations_on_a_wire_that_can(tmp_path: Path) -> None:
    def offered(bench: Caller) -> bool:
        return any(tool.name == "transfer" for tool in bench.model.requests[-1].tools)

    bench = bench_of(tmp_path / "a", "Hi.", "Hi.")
    await says(bench, "hello", CallSink())
    assert offered(bench)
    await bench.says("hello")
    assert not offered(bench)
    bench = bench_of(tmp_path / "b", "Hi.", **{"integrations.yml": "{}\n"})
    await says(bench, "hello", CallSink())
    assert not offered(bench)


async def test_a_call_that_was_not_offered_is_refused_calmly(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, tool_call("transfer", destination="billing"), "I cannot do that here.")
    assert (await bench.says("put me through")).messages == ["I cannot do that here."]
    assert "cannot be used now" in bench.model.requests[1].messages[-1].content


async def test_a_gate_holds_for_the_offer_and_for_the_call(tmp_path: Path) -> None:
    gated = skill(
        "Help.", description="Help.",
        tool_constraints="[{transfer: {requires: session.project.known == True}}]",
    )  # fmt: skip
    files = {"skills/help/skill.md": gated, "memory.yml": "schema: {known: {type: bool, mutable: true}}\n"}
    bench = bench_of(
        tmp_path, tool_call("start_skill", skill="help"), tool_call("transfer", destination="billing"), "No.", **files
    )
    sink = CallSink()
    await says(bench, "put me through", sink)
    assert not any(tool.name == "transfer" for tool in bench.model.requests[1].tools)
    assert sink.targets == []
    assert sink.messages == ["No."]


async def test_what_follows_a_step_is_for_when_it_failed(tmp_path: Path) -> None:
    bench, sink = bench_of(tmp_path, START, "Anything else?"), CallSink(TransferReason.NO_ANSWER)
    await says(bench, "a person please", sink)
    assert sink.messages[:2] == [ANNOUNCEMENT, "I could not reach anybody."]
    assert transfers_of(bench) == [(False, "no_answer")]
    bench, sink = bench_of(tmp_path, START), CallSink(TransferReason.COMPLETED)
    await says(bench, "a person please", sink)
    assert sink.messages == [ANNOUNCEMENT]
    assert bench.stack == []


async def test_a_block_that_ends_with_a_failed_transfer_does_not_end_in_silence(tmp_path: Path) -> None:
    only = skill(block("- {id: through, execute_tool: transfer, args: {destination: billing}}"), description="A.")
    bench = bench_of(tmp_path, START, "They are busy.", **{"skills/person/skill.md": only})
    sink = CallSink()
    await says(bench, "a person please", sink)
    assert len(sink.messages) > 1


async def test_on_a_channel_of_text_a_step_fails_calmly_without_an_announcement(tmp_path: Path) -> None:
    bench = bench_of(tmp_path, START, "Anything else?")
    said = await bench.says("a person please")
    assert said.messages[0] == "I could not reach anybody."
    assert transfers_of(bench) == [(False, "not_supported")]


async def test_the_reason_can_be_kept_and_branched_on(tmp_path: Path) -> None:
    steps = """
    - id: through
      execute_tool: transfer
      args: {destination: session.person.where}
      next:
        - if: session.person.transfer_result == "busy"
          then: busy
        - else: END
    - id: busy
      action: utter_busy
    """
    files = {
        "skills/person/skill.md": skill(block(steps), description="A person."),
        "skills/person/memory.yml": "schema: {private: {transfer_result: {type: text}, where: {type: text, "
        "initial_value: support}}}\n",
        "responses.yml": "responses: {utter_busy: All are busy., utter_wait: Please wait.}\n",
    }
    bench, sink = bench_of(tmp_path, START, "Anything else?", **files), CallSink(TransferReason.BUSY)
    await says(bench, "a person please", sink)
    assert sink.messages[:2] == ["Please wait.", "All are busy."]


@virtual_time
@pytest.mark.parametrize("way", ["step", "model"])
async def test_one_that_was_rolled_back_is_not_done_and_does_not_come_back_by_itself(tmp_path: Path, way: str) -> None:
    first = START if way == "step" else tool_call("transfer", destination="billing")
    bench = bench_of(tmp_path, first, "Of course.", tool_call("hangup"))
    sink = CallSink(seconds=10)
    async with asyncio.TaskGroup() as group:
        turn = group.create_task(says(bench, "a person please", sink))
        await asyncio.sleep(1)
        sink.cancel.cancel(CancelReason.BARGE_IN)
    assert turn.result().status is TurnStatus.CANCELLED
    assert transfers_of(bench) == []
    again = CallSink()
    await says(bench, "wait", again, "t1")
    assert (again.messages, again.targets) == (["Of course."], [])
    ends = CallSink()
    await says(bench, "that is all", ends, "t2")
    assert ends.hung_up


async def test_a_hang_up_is_in_the_tracker_once_the_call_says_that_it_is_certain(tmp_path: Path) -> None:
    bench, sink = bench_of(tmp_path, tool_call("hangup")), CallSink()
    await says(bench, "bye", sink, "t7")
    assert sink.hung_up
    assert bench.events("tool_executed") == []
    sink.ends[0]()
    (done,) = bench.events("tool_executed")
    assert (done["tool"], done["turn_id"]) == ("hangup", "t7")


@pytest.mark.parametrize(
    ("files", "problem"),
    [
        ({"skills/person/skill.md": skill(block(THROUGH.replace("billing", "b")))}, "transfer.unknown_destination"),
        ({"skills/person/skill.md": skill(block("- {id: a, execute_tool: transfer}"))}, "skill.block.transfer"),
        ({"integrations.yml": 'transfers: {billing: {to: "+15550100", utter: utter_gone}}\n'},
         "transfer.unknown_response"),
        ({"skills/person/skill.md": skill("A.", tool_constraints="[{transfer: {requires_confirmation: true}}]")},
         "skill.transfer_confirmation"),
        ({"integrations.yml": 'transfers: {billing: {to: "+15550100", hold_audio: no.wav}}\n'}, "transfer.hold_audio"),
    ],
)  # fmt: skip
def test_what_cannot_work_is_found_before_anybody_calls(tmp_path: Path, files: dict[str, str], problem: str) -> None:
    with pytest.raises(ProjectError) as error:
        Agent.load(load_config(write_project(tmp_path, {**FILES, **files}), {}), ScriptedModel())
    assert problem in [p.id for p in error.value.problems]


@pytest.mark.parametrize(
    "to", ["0800123", "555", "sip:a@b\r\nEvil: 1", "javascript:alert(1)", "sip:nobody", "+1555;ext=1", "sip:a b@c"]
)
def test_only_numbers_and_sip_addresses_are_destinations(tmp_path: Path, to: str) -> None:
    integrations = f"transfers: {{billing: {{to: {json.dumps(to)}}}}}\n"
    with pytest.raises(ProjectError):
        load_config(write_project(tmp_path, {**FILES, "integrations.yml": integrations}), {})


def test_without_destinations_a_step_that_transfers_is_no_problem(tmp_path: Path) -> None:
    config = load_config(write_project(tmp_path, {**FILES, "integrations.yml": "{}\n"}), {})
    assert not [p for p in Agent.load(config, ScriptedModel()).problems if p.id.startswith("transfer")]
