"""The labelled caller lines, and where the embedded model takes each of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import yaml

from voice_agent.dialogue.knowledge import Passage, WordIndex
from voice_agent.dialogue.loader import load_project
from voice_agent.llm.embedded.choice import Similarity
from voice_agent.llm.embedded.moves import Decision
from voice_agent.llm.embedded.policy import decide
from voice_agent.llm.protocol import Message, ModelRequest, Scope, SkillCard, ToolCall, ToolSpec

LINES = Path(__file__).parent.parent / "llm" / "embedded" / "caller_lines.yml"
TODAY = date(2026, 12, 1)


@dataclass(frozen=True)
class Agent:
    """A made-up agent: skills to start, texts to search."""

    skills: tuple[SkillCard, ...]
    index: WordIndex

    def search(self, query: str) -> list[dict[str, str]]:
        found = asyncio.run(self.index.search(query, limit=3))
        return [{"title": hit.passage.title, "text": hit.passage.text} for hit in found]


@dataclass(frozen=True)
class Line:
    """A caller's line and its label: a skill's id, ``knowledge``, ``out_of_scope`` or ``small_talk``."""

    text: str
    label: str


def load(part: str) -> tuple[Agent, list[Line]]:
    """Return the agent and the lines of ``tuned`` or ``unseen``."""
    data: dict[str, Any] = yaml.safe_load(LINES.read_text(encoding="utf-8"))[part]
    skills = tuple(SkillCard(s["id"], s["description"], tuple(s.get("examples", ()))) for s in data["skills"])
    passages = [Passage(reference["title"], reference["text"]) for reference in data["references"]]
    lines = [Line(text, label) for label, texts in data["lines"].items() for text in texts]
    return Agent(skills, WordIndex(passages)), lines


def example_agent() -> Agent:
    """Return the example agent as its project describes it."""
    project, _ = load_project(Path(__file__).parents[2])
    assert isinstance(project.knowledge, WordIndex)
    skills = tuple(SkillCard(s.id, s.description, s.examples, s.name) for s in project.menu())
    return Agent(skills, project.knowledge)


def northline_lines() -> list[Line]:
    """Return the labelled lines of the example agent."""
    data: dict[str, Any] = yaml.safe_load((LINES.parent / "northline_lines.yml").read_text(encoding="utf-8"))
    return [Line(text, label) for label, texts in data.items() for text in texts]


def outcome(agent: Agent, text: str, similar: Similarity) -> tuple[str, Decision]:
    """Run ``text`` through the policy as the engine would, and return its label with the last decision."""
    messages = [Message("user", text)]
    searched = False
    while True:
        decision = decide(ModelRequest(messages, list(_tools(agent, searched)), _scope(agent, text)), similar, TODAY)
        called = dict(decision.calls)
        if "search_knowledge" in called and not searched:
            searched = True
            call = ToolCall("call_1", "search_knowledge", json.dumps(called["search_knowledge"]))
            result = json.dumps({"passages": agent.search(called["search_knowledge"]["query"])})
            messages += [Message("assistant", tool_calls=(call,)), Message("tool", result, (), "call_1", call.name)]
            continue
        if "start_skill" in called:
            return str(called["start_skill"]["skill"]), decision
        if "cannot_help" in called:
            return "out_of_scope", decision
        return "knowledge" if searched and not decision.text.startswith("Is this about") else "small_talk", decision


def _scope(agent: Agent, text: str) -> Scope:
    return Scope(text, agent.skills, has_knowledge=True)


def _tools(agent: Agent, searched: bool) -> Iterator[ToolSpec]:
    ids = [skill.id for skill in agent.skills]
    yield ToolSpec("start_skill", "", {"type": "object", "properties": {"skill": {"type": "string", "enum": ids}}})
    yield ToolSpec("search_knowledge", "", {"type": "object", "properties": {"query": {"type": "string"}}})
    if searched:
        yield ToolSpec("cannot_help", "", {"type": "object", "properties": {"reason": {"type": "string"}}})
    yield ToolSpec("listen", "", {"type": "object", "properties": {}})
    yield ToolSpec("hangup", "", {"type": "object", "properties": {}})
