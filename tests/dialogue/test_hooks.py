"""Hooks see and change what passes, within their time; a broken one never reaches the caller, nor lets things slip."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from tests.fakes.model import ScriptedModel, tool_call
from tests.support.dialogue_projects import Caller, block, caller, cancel_after, skill, write_project
from tests.support.virtual_time import virtual_time
from voice_agent.diagnostics import Problem, Severity
from voice_agent.dialogue.cancellation import CancelReason, CancelToken
from voice_agent.dialogue.loader import load_project
from voice_agent.dialogue.reply import TurnStatus

IMPORT = "import asyncio\nfrom voice_agent.dialogue.hooks import *\n"
FILES = {
    "skills/shop/skill.md": skill("Sell.", description="Shop."),
    "skills/shop/memory.yml": "schema: {public: {seen: {type: text}}}\n",
    "skills/shop/tools.py": """
        from voice_agent.dialogue import tool, ToolResult

        @tool(description="Order something")
        async def order(what: str) -> ToolResult:
            return ToolResult(llm_response={"ordered": what})
        """,
    "references/hours.md": "# Opening hours\nWe open at nine.\n",
}
START = tool_call("start_skill", skill="shop")
ORDER = tool_call("order", what="tea")


def hooked(root: Path, hooks: str, script: list[object], **more: object) -> Caller:
    return caller(root, {**FILES, "hooks.py": IMPORT + hooks}, script, **more)  # type: ignore[arg-type]


async def test_the_callers_words_are_changed_before_they_are_stored_or_read(tmp_path: Path) -> None:
    hooks = """
@modify_incoming_message
async def mask(payload, context):
    assert (context.channel, payload.kind) == ("text", "text")
    return payload.model_copy(update={"text": payload.text.replace("4242", "****")})
"""
    bench = hooked(tmp_path, hooks, ["Hello."])
    await bench.says("my card is 4242")
    assert bench.events("user")[-1]["text"] == "my card is ****"
    assert bench.model.requests[0].messages[-1].content == "my card is ****"
    assert "4242" not in str(bench.conversation.events)


async def test_words_that_a_hook_takes_away_make_no_turn(tmp_path: Path) -> None:
    bench = hooked(tmp_path, "@modify_incoming_message\nasync def nothing(payload):\n    return ''\n", [])
    assert (await bench.says("noise")).messages == []
    assert bench.model.requests == []


@virtual_time
@pytest.mark.parametrize("body", ["raise RuntimeError('x')", "await asyncio.sleep(60)", "return 7"])
async def test_a_broken_hook_on_incoming_words_costs_the_caller_nothing_but_its_limit(
    tmp_path: Path, body: str
) -> None:
    bench = hooked(tmp_path, f"@modify_incoming_message\nasync def broken(payload):\n    {body}\n", ["Hello."])
    said = await asyncio.wait_for(bench.says("hi"), 3)
    assert said.messages == ["Hello."]


async def test_beginning_and_end_of_a_turn_are_observed(tmp_path: Path) -> None:
    hooks = """
seen = []

@on_turn_started
async def began(payload):
    seen.append(("began", payload.number))

@on_turn_finished()
async def ended(payload, context):
    seen.append((payload.status, context.conversation_id))
    (__import__("pathlib").Path(__file__).parent / "seen.txt").write_text(repr(seen))
"""
    bench = hooked(tmp_path, hooks, ["Hello."])
    await bench.connects()
    await bench.says("hi")
    await bench.conversation.close("completed")
    assert (
        tmp_path / "seen.txt"
    ).read_text() == "[('began', 1), ('completed', 'c1'), ('began', 2), ('completed', 'c1')]"


@virtual_time
async def test_observers_run_beside_each_other_and_never_hold_up_the_turn(tmp_path: Path) -> None:
    hooks = "\n".join(f"@on_model_request\nasync def slow{n}(payload):\n    await asyncio.sleep(5)\n" for n in range(3))
    bench = hooked(tmp_path, hooks, ["Hello."])
    loop = asyncio.get_running_loop()
    await bench.says("hi")
    assert loop.time() == 0
    assert len([t for t in asyncio.all_tasks() if t.get_name().startswith("hook slow")]) == 3
    await bench.conversation.close("completed")
    assert loop.time() == pytest.approx(1.0)
    assert not [t for t in asyncio.all_tasks() if t.get_name().startswith("hook slow")]


@virtual_time
async def test_observers_that_never_end_cannot_pile_up(tmp_path: Path) -> None:
    bench = hooked(tmp_path, "@on_turn_started\nasync def stuck(payload):\n    await asyncio.sleep(1e9)\n", [])
    bench.model._then = "Hello."
    for _ in range(80):
        await bench.says("hi")
    assert len([t for t in asyncio.all_tasks() if t.get_name() == "hook stuck"]) == 64
    await asyncio.sleep(31)
    assert not [t for t in asyncio.all_tasks() if t.get_name() == "hook stuck"]


async def test_an_observer_that_raises_hurts_neither_the_turn_nor_the_others(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hooks = """
@on_outgoing_message
async def broken(payload):
    raise RuntimeError("no")

@on_outgoing_message
async def fine(payload, context):
    (__import__("pathlib").Path(__file__).parent / "said.txt").write_text(payload.text)
"""
    bench = hooked(tmp_path, hooks, ["Hello there."])
    assert (await bench.says("hi")).messages == ["Hello there."]
    await bench.conversation.close("completed")
    assert (tmp_path / "said.txt").read_text() == "Hello there."
    assert "hook broken failed" in caplog.text


async def test_a_prompt_is_changed_and_tools_may_be_taken_away_but_not_added(tmp_path: Path) -> None:
    hooks = """
@modify_model_request
async def narrow(payload):
    from voice_agent.llm.protocol import Message, ToolSpec
    tools = tuple(t for t in payload.tools if t.name != "order") + (ToolSpec("invented", "", {}),)
    return payload.model_copy(update={"messages": (*payload.messages, Message("user", "extra")), "tools": tools})
"""
    bench = hooked(tmp_path, hooks, [START, ORDER, tool_call("invented"), "No."])
    await bench.says("tea please")
    assert all(r.messages[-1].content == "extra" for r in bench.model.requests)
    assert not {"order", "invented"} & {t.name for r in bench.model.requests for t in r.tools}
    assert bench.events("tool_executed") == []


@virtual_time
@pytest.mark.parametrize("body", ["raise RuntimeError('x')", "await asyncio.sleep(60)", "return 'x'"])
async def test_a_request_hook_that_breaks_does_not_let_the_prompt_out(tmp_path: Path, body: str) -> None:
    bench = hooked(tmp_path, f"@modify_model_request\nasync def broken(payload):\n    {body}\n", [])
    said = await bench.says("my secret")
    assert (bench.model.requests, said.result.status) == ([], TurnStatus.ERROR)
    assert said.sink.responses == ["utter_internal_error"]


async def test_a_reply_that_is_refused_is_never_heard_and_the_model_is_told_why(tmp_path: Path) -> None:
    hooks = """
@modify_model_response
async def no_promises(payload):
    if "promise" in payload.text:
        raise RetryModel("Promise nothing.")
    return payload.model_copy(update={"text": payload.text.upper()})
"""
    bench = hooked(tmp_path, hooks, ["I promise a refund.", "I can look into it."])
    said = await bench.says("refund?")
    assert said.messages == ["I CAN LOOK INTO IT."]
    assert "Promise nothing." in bench.model.requests[1].messages[0].content
    assert "promise a refund" not in str(bench.conversation.events)


async def test_a_model_that_is_always_refused_is_given_up(tmp_path: Path) -> None:
    bench = hooked(tmp_path, "@modify_model_response\nasync def never(payload):\n    raise RetryModel('no')\n", [])
    bench.model._then = "Hello."
    said = await bench.says("hi")
    assert said.sink.responses == ["utter_cannot_help"]
    assert len(bench.model.requests) == 3


async def test_refusing_what_was_read_out_of_the_first_words_only_discards_it(tmp_path: Path) -> None:
    files = {
        "skills/ask/skill.md": skill(block("- collect: name\n  utterance: utter_ask"), description="Ask."),
        "skills/ask/memory.yml": "schema: {public: {name: {type: text}}}\n",
        "responses.yml": "responses:\n  utter_ask: Who?\n",
        "hooks.py": IMPORT
        + """
@modify_model_response
async def never(payload):
    if payload.purpose == "set_fields":
        raise RetryModel("no")
""",
    }
    bench = caller(tmp_path, files, [tool_call("start_skill", skill="ask"), tool_call("set_fields", name="Ann")])
    assert (await bench.says("I am Ann")).messages == ["Who?"]
    assert (bench.read("ask", "name"), len(bench.model.requests)) == (None, 2)


async def test_arguments_and_results_are_changed_and_the_changed_ones_are_recorded(tmp_path: Path) -> None:
    hooks = """
@modify_tool_call
async def decaf(payload, context):
    context.memory.set("seen", payload.tool)
    return payload.model_copy(update={"arguments": {"what": "decaf " + payload.arguments["what"]}})

@modify_tool_result
async def mask(payload):
    return payload.model_copy(update={"result": {"masked": payload.result["ordered"].upper()}})
"""
    bench = hooked(tmp_path, hooks, [START, ORDER, "Done."])
    await bench.says("tea")
    (event,) = bench.events("tool_executed")
    assert (event["arguments_json"], event["result_json"]) == ('{"what": "decaf tea"}', '{"masked": "DECAF TEA"}')
    assert '"ordered"' not in str(bench.model.requests[2].messages)
    assert [(e["key"], e["source"]) for e in bench.events("memory_set")] == [("seen", "hook")]


async def test_a_call_hook_that_breaks_stops_the_call_and_says_so_to_the_model(tmp_path: Path) -> None:
    hooks = "@modify_tool_call\nasync def broken(payload):\n    raise RuntimeError('x')\n"
    bench = hooked(tmp_path, hooks, [START, ORDER, "Sorry."])
    assert (await bench.says("tea")).messages == ["Sorry."]
    (event,) = bench.events("tool_executed")
    assert (event["success"], "Not executed" in event["result_json"]) == (False, True)


@virtual_time
async def test_a_result_hook_that_breaks_keeps_the_result_back_but_the_run_is_recorded_once(tmp_path: Path) -> None:
    hooks = "@modify_tool_result\nasync def broken(payload):\n    await asyncio.sleep(60)\n"
    bench = hooked(tmp_path, hooks, [START, ORDER, "Done."])
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(1, token, CancelReason.BARGE_IN))
        turn = group.create_task(bench.says("tea", cancel=token))
    assert turn.result().result.status is TurnStatus.CANCELLED
    (event,) = bench.events("tool_executed")
    assert (event["success"], "ordered" in event["result_json"]) == (True, False)
    assert "Do not run it again" in event["result_json"]


async def test_questions_to_the_references_and_what_is_found_are_changed(tmp_path: Path) -> None:
    hooks = """
@modify_knowledge_query
async def widen(payload):
    return payload.model_copy(update={"query": "opening hours"})

@modify_knowledge_results
async def censor(payload):
    return payload.model_copy(update={"passages": payload.passages[:0]})
"""
    bench = hooked(tmp_path, hooks, [tool_call("search_knowledge", query="when"), "I do not know."])
    await bench.says("when?")
    assert bench.events("knowledge_searched")[0]["query"] == "opening hours"
    assert bench.model.requests[1].messages[-1].content == '{"passages": []}'


async def test_a_search_hook_that_breaks_finds_nothing(tmp_path: Path) -> None:
    hooks = "@modify_knowledge_results\nasync def broken(payload):\n    raise RuntimeError('x')\n"
    bench = hooked(tmp_path, hooks, [tool_call("search_knowledge", query="opening hours"), "I do not know."])
    await bench.says("when?")
    assert "nine" not in bench.model.requests[1].messages[-1].content


@pytest.mark.parametrize("name", ["modify_outgoing_message", "modify_outgoing_text"])
async def test_every_message_is_checked_in_order_before_it_is_heard(tmp_path: Path, name: str) -> None:
    files = {
        "skills/a/skill.md": skill(
            block(
                """
                - action: utter_one
                - execute_tool: order
                  args: {what: x}
                - action: utter_two
                - execute_tool: hangup
                """
            )
        ),
        "skills/a/tools.py": FILES["skills/shop/tools.py"],
        "responses.yml": "responses: {utter_one: One., utter_two: Two secret.}\n",
        "hooks.py": IMPORT + f"@{name}\nasync def mask(payload):\n    return payload.text.replace('secret', '...')\n",
    }
    bench = caller(tmp_path, files, [["Sure. My secret.", tool_call("start_skill", skill="a")]])
    said = await bench.says("go")
    assert said.messages == ["Sure. My ....", "One.", "Two ...."]
    assert said.sink.hung_up
    assert type(said.sink.items[-1]).__name__ == "HangUp"
    assert [getattr(item, "source", None) for item in said.sink.items] == ["model", "response", "response", None]


@virtual_time
@pytest.mark.parametrize("body", ["raise RuntimeError('x')", "await asyncio.sleep(60)"])
async def test_a_message_that_cannot_be_checked_is_not_said(tmp_path: Path, body: str) -> None:
    bench = hooked(tmp_path, f"@modify_outgoing_message\nasync def broken(payload):\n    {body}\n", ["The secret."])
    said = await bench.says("hi")
    assert said.messages == ["I am sorry, I cannot say that."]


async def test_a_message_that_a_hook_empties_is_not_said(tmp_path: Path) -> None:
    bench = hooked(tmp_path, "@modify_outgoing_message\nasync def hush(payload):\n    return ''\n", ["Hello."])
    assert (await bench.says("hi")).messages == []


@virtual_time
async def test_a_turn_cancelled_while_a_hook_looks_says_nothing_more(tmp_path: Path) -> None:
    hooks = "@modify_outgoing_message\nasync def slow(payload):\n    await asyncio.sleep(1)\n"
    bench = hooked(tmp_path, hooks, ["Hello."])
    token = CancelToken()
    async with asyncio.TaskGroup() as group:
        group.create_task(cancel_after(0.5, token, CancelReason.BARGE_IN))
        turn = group.create_task(bench.says("hi", cancel=token))
    assert (turn.result().result.status, turn.result().messages) == (TurnStatus.CANCELLED, [])


async def test_without_a_hook_that_changes_them_replies_are_spoken_while_the_model_writes(tmp_path: Path) -> None:
    bench = hooked(tmp_path, "@on_outgoing_message\nasync def watch(payload):\n    pass\n", ["One two three."])
    said = await bench.says("hi")
    assert len(said.sink.items) == 4


async def test_an_observer_cannot_write_memory_and_a_modifier_only_what_is_declared(tmp_path: Path) -> None:
    hooks = """
@on_turn_started
async def sneaky(payload, context):
    context.memory.set("vip", True)

@modify_incoming_message
async def note(payload, context):
    context.memory.set("vip", True)
    try:
        context.memory.set("nope", 1)
    except Exception as fault:
        return payload.text + f" [{type(fault).__name__}]"
"""
    bench = hooked(tmp_path, hooks, ["Hello."], metadata=None)
    write_project(tmp_path, {**FILES, "memory.yml": "vip: {type: bool}\n", "hooks.py": IMPORT + hooks})
    bench = caller(tmp_path, {**FILES, "memory.yml": "vip: {type: bool}\n", "hooks.py": IMPORT + hooks}, ["Hello."])
    await bench.connects()
    assert bench.read("project", "vip") is None
    await bench.says("hi")
    assert bench.read("project", "vip") is True
    assert bench.events("user")[-1]["text"] == "hi [MemoryRefused]"


# --- loading -----------------------------------------------------------------------------------


def found(root: Path, files: dict[str, str]) -> list[Problem]:
    return list(load_project(write_project(root, {**FILES, **files}))[1])


@pytest.mark.parametrize(
    ("text", "id", "part"),
    [
        (
            "from voice_agent.dialogue.hooks import *\n@on_tool_call\ndef f(payload):\n    pass\n",
            "hook.definition",
            "async",
        ),
        ("async def on_tool_call():\n    pass\n", "hook.definition", "(payload, context)"),
        ("async def on_tool_call(a, b, c):\n    pass\n", "hook.definition", "(payload, context)"),
        ("async def on_tool_cal(payload):\n    pass\n", "hook.unknown_point", "on_tool_call"),
        ("async def modify_turn_started(payload):\n    pass\n", "hook.unknown_point", "on_turn_started"),
        ("import nowhere\n", "hook.import", "nowhere"),
        ("def (\n", "hook.syntax", "Python"),
    ],
)
def test_a_hook_that_cannot_work_is_named_with_its_line(tmp_path: Path, text: str, id: str, part: str) -> None:
    (problem,) = found(tmp_path, {"hooks.py": text})
    assert (problem.id, part in f"{problem.message} {problem.remedy}", problem.line is not None) == (id, True, True)


@pytest.mark.parametrize("engine", ["rasa.mantle.hooks", "voice_agent.dialogue.hooks"])
async def test_hooks_are_found_in_folders_run_in_order_and_import_by_older_paths(tmp_path: Path, engine: str) -> None:
    hook = "from {} import modify_incoming_message, IncomingMessagePayload, RetryModel\nfrom lib.names import NAME\n"
    hook += "@modify_incoming_message\nasync def add(payload):\n    return payload.text + ' {}' + NAME\n"
    files = {
        **FILES,
        "lib/names.py": "NAME = '!'\n",
        "hooks.py": hook.format(engine, "a"),
        "hooks/b.py": hook.format(engine, "b"),
        "hooks/deep/c.py": hook.format(engine, "c"),
    }
    bench = caller(tmp_path, files, ["Hello."])
    await bench.says("hi")
    assert bench.events("user")[-1]["text"] == "hi a! b! c!"


async def test_a_function_called_like_a_hook_is_one_without_a_decorator(tmp_path: Path) -> None:
    bench = hooked(tmp_path, "async def modify_incoming_message(payload):\n    return 'changed'\n", ["Hello."])
    await bench.says("hi")
    assert bench.events("user")[-1]["text"] == "changed"


def test_a_hook_that_makes_replies_wait_is_noted(tmp_path: Path) -> None:
    hooks = "async def modify_model_response(payload):\n    pass\n"
    bench = caller(tmp_path, {**FILES, "hooks.py": hooks}, model=ScriptedModel())
    (problem,) = [p for p in bench.agent.problems if p.id == "hook.waits"]
    assert problem.severity is Severity.NOTE


async def test_a_reply_with_a_changed_call_runs_the_changed_one(tmp_path: Path) -> None:
    hooks = """
@modify_model_response
async def swap(payload):
    from dataclasses import replace
    calls = tuple(replace(c, arguments='{"what": "water"}') if c.name == "order" else c for c in payload.tool_calls)
    return payload.model_copy(update={"tool_calls": calls})
"""
    bench = hooked(tmp_path, hooks, [START, ORDER, "Done."])
    await bench.says("tea")
    assert json.loads(bench.events("tool_executed")[0]["arguments_json"]) == {"what": "water"}


async def test_a_hook_changes_things_by_what_it_returns_and_by_nothing_else(tmp_path: Path) -> None:
    hooks = """
@modify_model_request
async def scribble(payload):
    for tool in payload.tools:
        tool.parameters["properties"].clear()

@on_tool_call
async def watch(payload):
    payload.arguments["what"] = "coffee"

@modify_tool_call
async def meddle(payload):
    payload.arguments["what"] = "milk"
"""
    bench = hooked(tmp_path, hooks, [START, ORDER, "Done."])
    await bench.says("tea please")
    assert [json.loads(e["result_json"]) for e in bench.events("tool_executed")] == [{"ordered": "tea"}]
    (order,) = (t for t in bench.model.requests[-1].tools if t.name == "order")
    assert order.parameters["properties"] == {"what": {"type": "string"}}
