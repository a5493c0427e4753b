"""What a model may read of a project before the first call: its skills, and its reference texts."""

from __future__ import annotations

from voice_agent.dialogue.knowledge import WordIndex
from voice_agent.dialogue.project import Project
from voice_agent.llm.protocol import LanguageModel, SkillCard, prepare


async def brief(model: LanguageModel, project: Project) -> None:
    """Let ``model`` read what the callers of ``project`` will ask about; nothing for models that need none of it."""
    skills = [SkillCard(s.id, s.description, s.examples, s.name) for s in project.menu()]
    indexes = [project.knowledge, *(skill.knowledge for skill in project.skills.values())]
    passages = [p for index in indexes if isinstance(index, WordIndex) for p in index.passages]
    await prepare(model, skills, [(p.title, p.text) for p in passages])
