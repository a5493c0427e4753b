"""Tools are declared by signature; what cannot work is said when they are loaded."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from voice_agent.dialogue import ToolContext, ToolResult, tool
from voice_agent.dialogue.tools import ArgumentsRefused, ToolDefinitionError, build_tool


@tool(description="Look up a balance")
async def balance(
    account: str, days: int = 30, kind: Literal["full", "short"] = "full", context: ToolContext | None = None
) -> ToolResult:
    return ToolResult(llm_response={})


def test_the_schema_comes_from_the_signature_without_the_context() -> None:
    built = build_tool(balance)
    assert (built.name, built.description, built.takes_context) == ("balance", "Look up a balance", "context")
    assert built.parameters == {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "account": {"type": "string"},
            "days": {"type": "integer", "default": 30},
            "kind": {"type": "string", "enum": ["full", "short"], "default": "full"},
        },
        "required": ["account"],
    }


def test_arguments_get_their_types_and_defaults() -> None:
    assert build_tool(balance).validate({"account": "1", "days": "7"}) == {"account": "1", "days": 7, "kind": "full"}


@pytest.mark.parametrize("amount", ["nan", "-inf", float("inf"), float("nan")])
def test_a_number_that_no_limit_holds_for_is_refused(amount: object) -> None:
    @tool(description="Pay a bill")
    async def pay(amount: float) -> ToolResult:
        return ToolResult(llm_response={})

    with pytest.raises(ArgumentsRefused, match="amount: "):
        build_tool(pay).validate({"amount": amount})


@pytest.mark.parametrize(
    ("arguments", "named"),
    [({}, "account"), ({"account": "1", "dayz": 2}, "dayz"), ({"account": "1", "days": "many"}, "days")],
)
def test_arguments_that_do_not_fit_are_refused_by_name(arguments: dict[str, Any], named: str) -> None:
    with pytest.raises(ArgumentsRefused, match=named):
        build_tool(balance).validate(arguments)


def test_a_parameter_called_title_keeps_its_name_in_the_schema() -> None:
    @tool(description="File a book")
    async def file(title: str) -> ToolResult:
        return ToolResult()

    assert build_tool(file).parameters["properties"] == {"title": {"type": "string"}}


def test_a_synchronous_tool_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="async def"):

        @tool(description="x")  # type: ignore[arg-type]
        def plain() -> None: ...


def test_a_bare_decorator_is_refused() -> None:
    with pytest.raises(ToolDefinitionError, match="description"):

        @tool  # type: ignore[arg-type]
        async def bare() -> None: ...


def test_star_arguments_are_refused() -> None:
    @tool(description="x")
    async def loose(*args: str) -> ToolResult:
        return ToolResult()

    with pytest.raises(ToolDefinitionError, match=r"\*args"):
        build_tool(loose)
