"""What the dialogue may ask of recall, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from voice_agent.recall.entries import Found, Who


class Recalls(Protocol):
    """Memory beyond the prompt (`voice_agent.recall.memories.Memories`)."""

    @property
    def budget_s(self) -> float:
        """How long a turn may wait for it, from its beginning."""
        ...

    @property
    def latest(self) -> int:
        """How many utterances a short one may be looked up together with."""
        ...

    @property
    def prompt_tokens(self) -> int: ...

    @property
    def fills_prompts(self) -> bool:
        """There may be something to put into a prompt."""
        ...

    @property
    def k(self) -> int:
        """Most items of a kind."""
        ...

    @property
    def knows_documents(self) -> bool:
        """Something has been learnt that `search` may find."""
        ...

    @property
    def procedures_above(self) -> int | None:
        """As many tools, or skills, are offered without choosing; None to offer them all."""
        ...

    def has_references(self, owner: str) -> bool:
        """The references of ``owner`` are in the index as they are now."""
        ...

    async def recall(self, query: str, who: Who) -> Sequence[Found]:
        """Return what was said by this caller, and what documents say, that fits; best first of each.

        Never raises for faults of its own: they are logged and counted, and nothing is recalled.
        """
        ...

    async def search(self, query: str, owners: Sequence[str], limit: int) -> Sequence[Found] | None:
        """Return passages of documents, and of the references of ``owners``; None when they cannot be searched now."""
        ...

    async def fitting(self, query: str, procedures: Mapping[str, Sequence[str]]) -> Sequence[str] | None:
        """Return the names of tools and skills, each given with its lines, those that fit best first.

        None if that cannot be told now.
        """
        ...
