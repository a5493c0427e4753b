"""Memory is typed, scoped, and tells who wrote."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from voice_agent.dialogue.fields import Field, MemoryRefused, coerce
from voice_agent.dialogue.memory import Memory, MemoryHandle, Schema, Writer


def field(name: str, type: Any = "text", namespace: str = "bill", **more: Any) -> Field:
    return Field(namespace, name, type, **more)


PLAN = field("plan", "categorical", enum_values=("Basic", "Fast"))
AMOUNT = field("amount", "float")
COUNT = field("count", "int")
PAID = field("paid", "bool")
NOTES = field("notes", "list")
ANYTHING = field("anything", "any")
SECRET = field("secret", public=False)
OWNER = field("owner", namespace="project")
MOOD = field("mood", namespace="project", mutable=True)
SEEDED = field("phone", namespace="project", seed=True)
NAME_IN_BOTH = [field("name"), field("name", namespace="project")]


def memory(**more: Any) -> Memory:
    fields = [PLAN, AMOUNT, COUNT, PAID, NOTES, ANYTHING, SECRET, OWNER, MOOD, SEEDED, *NAME_IN_BOTH]
    return Memory(Schema(fields), **more)


@pytest.mark.parametrize(
    ("declared", "given", "kept"),
    [
        (PLAN, "fast", "Fast"),
        (AMOUNT, "1,250.50", 1250.5),
        (AMOUNT, 3, 3.0),
        (COUNT, "7", 7),
        (COUNT, 7.0, 7),
        (PAID, "yes", True),
        (PAID, "False", False),
        (NOTES, ("a", "b"), ["a", "b"]),
        (SECRET, 12, "12"),
        (PLAN, None, None),
        (ANYTHING, {"a": [1, ("b",)]}, {"a": [1, ["b"]]}),
        (ANYTHING, date(2030, 5, 6), "2030-05-06"),
    ],
)
def test_a_value_takes_the_type_of_its_field(declared: Field, given: Any, kept: Any) -> None:
    assert coerce(declared, given) == kept
    assert type(coerce(declared, given)) is type(kept)


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        (PLAN, "Gold"),
        (AMOUNT, "much"),
        (COUNT, 7.5),
        (COUNT, True),
        (PAID, "perhaps"),
        (NOTES, "a"),
        (SECRET, {"a": 1}),
        (AMOUNT, float("nan")),
        (AMOUNT, "inf"),
        (AMOUNT, 10**400),
        pytest.param(COUNT, 10**5000, id="a count without end"),
        (COUNT, float("inf")),
        pytest.param(SECRET, 10**5000, id="a text without end"),
        (SECRET, float("nan")),
        (NOTES, [float("nan")]),
        (ANYTHING, {("a", 1): 2}),
        (ANYTHING, ["x" * 60_000] * 2),
    ],
)
def test_a_value_of_another_type_is_refused(declared: Field, given: Any) -> None:
    with pytest.raises(MemoryRefused, match=declared.name):
        coerce(declared, given)


def test_a_refused_personal_value_is_not_repeated_in_the_message() -> None:
    with pytest.raises(MemoryRefused) as caught:
        coerce(field("card", "int", pii=True), "4111 oops")
    assert "4111" not in str(caught.value)


def test_project_memory_is_written_once_unless_mutable() -> None:
    values = memory()
    values.write(OWNER, "Ann", Writer.TOOL)
    values.write(OWNER, "Ann", Writer.TOOL)
    with pytest.raises(MemoryRefused, match="locked"):
        values.write(OWNER, "Bob", Writer.TOOL)
    values.write(MOOD, "calm", Writer.TOOL)
    values.write(MOOD, "cross", Writer.TOOL)
    assert (values.read("project", "owner"), values.read("project", "mood")) == ("Ann", "cross")


def test_the_model_never_writes_project_memory() -> None:
    with pytest.raises(MemoryRefused, match="project"):
        memory().write(MOOD, "calm", Writer.MODEL)


def test_metadata_fills_only_what_is_declared_as_seed() -> None:
    values = memory()
    values.write(SEEDED, "123", Writer.SEED)
    with pytest.raises(MemoryRefused, match="seed"):
        values.write(OWNER, "Ann", Writer.SEED)


def test_a_bare_name_means_the_skills_own_field_before_the_projects() -> None:
    values = memory()
    MemoryHandle(values, "bill").set("name", "own")
    MemoryHandle(values, "other").set("name", "shared")
    assert (values.read("bill", "name"), values.read("project", "name")) == ("own", "shared")


def test_an_undeclared_write_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(MemoryRefused, match="Did you mean 'amount'"):
        MemoryHandle(memory(), "bill").set("amuont", 1)


def test_a_closed_handle_refuses_late_writes() -> None:
    values = memory()
    handle = MemoryHandle(values, "bill")
    handle.close()
    with pytest.raises(MemoryRefused, match="has ended"):
        handle.set("amount", 1)
    assert values.read("bill", "amount") is None


@pytest.mark.parametrize("name", ["notes", "anything"])
def test_what_a_tool_keeps_a_hold_of_does_not_change_memory_later(name: str) -> None:
    values = memory()
    handle, held = MemoryHandle(values, "bill"), ["a"]
    handle.set(name, held)
    handle.close()
    held.append("late")
    handle.get(name).append("later")
    assert values.read("bill", name) == ["a"]


def test_an_initial_value_is_the_same_for_every_conversation() -> None:
    schema = Schema([field("notes", "list", initial_value=[])])
    MemoryHandle(Memory(schema), "bill").get("notes").append("mine")
    assert MemoryHandle(Memory(schema), "bill").get("notes") == []


def test_public_values_outlive_the_skill_until_it_starts_again() -> None:
    values = memory()
    values.write(AMOUNT, 5, Writer.TOOL)
    values.write(SECRET, "x", Writer.TOOL)
    values.end("bill")
    assert (values.read("bill", "amount"), values.read("bill", "secret")) == (5.0, None)
    values.begin("bill")
    assert values.read("bill", "amount") is None


def test_a_private_value_is_not_readable_by_another_skill() -> None:
    values = memory()
    values.write(SECRET, "x", Writer.TOOL)
    values.write(AMOUNT, 5, Writer.TOOL)
    assert [f.name for f, _ in values.readable("other")] == ["amount"]
    assert [f.name for f, _ in values.readable("bill")] == ["amount", "secret"]


def test_every_write_is_reported_with_its_writer() -> None:
    seen: list[tuple[str, Any, Writer]] = []
    values = memory(on_write=lambda f, v, w: seen.append((f.name, v, w)))
    values.write(COUNT, "3", Writer.MODEL)
    with pytest.raises(MemoryRefused):
        values.write(COUNT, "three", Writer.MODEL)
    assert seen == [("count", 3, Writer.MODEL)]


def test_a_snapshot_restores_what_is_still_declared() -> None:
    values = memory()
    values.write(COUNT, 3, Writer.TOOL)
    values.write(PLAN, "Fast", Writer.TOOL)
    changed = Memory(Schema([COUNT, field("plan", "categorical", enum_values=("Gold",))]))
    changed.restore(values.snapshot())
    assert (changed.read("bill", "count"), changed.read("bill", "plan")) == (3, None)


def test_an_unset_field_reads_its_initial_value() -> None:
    assert Memory(Schema([field("tone", initial_value="warm")])).read("bill", "tone") == "warm"
