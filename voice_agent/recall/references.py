"""What of a project's references is new, has changed, or is gone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from voice_agent.recall.documents import Document
from voice_agent.recall.entries import Source

Key = tuple[str, str]
"""Owner (a skill's id, or empty) and name."""


def differences(
    known: Sequence[Source], references: Mapping[str, Sequence[Document]]
) -> tuple[Mapping[Key, Document], Set[Key]]:
    """Return the texts that are to be learnt, and the keys of those that are to be unlearnt."""
    digests = {(source.owner, source.name): source.digest for source in known}
    wanted = {(owner, text.name): text for owner, texts in references.items() for text in texts}
    changed = {key: text for key, text in wanted.items() if digests.get(key) != text.digest}
    return changed, digests.keys() - wanted.keys()
