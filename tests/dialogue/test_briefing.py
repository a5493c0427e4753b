"""What a model reads of a project before the first call."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

from tests.fakes.model import ScriptedModel
from tests.support.dialogue_projects import skill, write_project
from voice_agent.dialogue.briefing import brief
from voice_agent.dialogue.loader import load_project
from voice_agent.llm.deadlines import DeadlinedModel
from voice_agent.llm.fallback import Candidate, FallbackModel
from voice_agent.llm.protocol import ModelEvent, ModelRequest, SkillCard

FILES = {
    "skills/pay/skill.md": skill("Take the money.", name="Bill payment", description="Pays.", examples="[pay my bill]"),
    "skills/pay/references/cards.md": "# Cards\nWe take all cards.\n",
    "skills/hidden/skill.md": skill("Work.", routing="{engine_managed: true}"),
    "references/hours.md": "# Hours\nFrom nine to six.\n",
}


class Reader:
    """A model that keeps what it was given to read."""

    name = "reader"

    def __init__(self) -> None:
        self.skills: list[SkillCard] = []
        self.passages: list[tuple[str, str]] = []

    async def prepare(self, skills: Sequence[SkillCard], passages: Sequence[tuple[str, str]]) -> None:
        self.skills += skills
        self.passages += passages

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        raise AssertionError("nothing is asked")
        yield

    async def warm_up(self) -> None: ...

    async def aclose(self) -> None: ...


async def test_the_menu_and_all_reference_texts_are_read_through_every_wrapper(tmp_path: Path) -> None:
    reader = Reader()
    wrapped = FallbackModel([Candidate(DeadlinedModel(reader, first_token_s=1, between_tokens_s=1))])
    await brief(wrapped, load_project(write_project(tmp_path, FILES))[0])
    assert reader.skills == [SkillCard("pay", "Pays.", ("pay my bill",), "Bill payment")]
    assert sorted(reader.passages) == [("Cards", "We take all cards."), ("Hours", "From nine to six.")]


async def test_a_model_that_needs_no_preparation_is_left_alone(tmp_path: Path) -> None:
    model = ScriptedModel([])
    await brief(FallbackModel([Candidate(model)]), load_project(write_project(tmp_path, FILES))[0])
    assert not model.requests
