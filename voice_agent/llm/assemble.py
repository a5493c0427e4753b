"""Tool calls out of their fragments."""

from __future__ import annotations

from dataclasses import dataclass, field

from voice_agent.llm.protocol import ToolCall, ToolCallDelta

MAX_CALLS = 32
CUT_SHORT = "{"
"""Arguments of a call that was cut off before they came: no JSON, which whoever runs the call refuses."""
MAX_ARGUMENT_CHARS = 64_000


@dataclass
class _Partial:
    id: str | None = None
    name: str = ""
    arguments: list[str] = field(default_factory=list)
    size: int = 0


class ToolCallAssembler:
    """Collects the `ToolCallDelta`s of one response and gives them out as complete calls.

    Fragments may come interleaved and in any order of ``index``. A call that never got an id is
    given one; a call that never got a name cannot be run and is left out. Bounded: a response
    with more than ``MAX_CALLS`` calls or ``MAX_ARGUMENT_CHARS`` characters of arguments in one
    call is cut there, which leaves JSON that its reader refuses.
    """

    def __init__(self) -> None:
        self._partials: dict[int, _Partial] = {}

    def __bool__(self) -> bool:
        return any(partial.name for partial in self._partials.values())

    def add(self, delta: ToolCallDelta) -> None:
        """Take one fragment. A later id or name of the same index only fills what is missing."""
        partial = self._partials.get(delta.index)
        if partial is None:
            if len(self._partials) >= MAX_CALLS:
                return
            partial = self._partials[delta.index] = _Partial()
        partial.id = partial.id or delta.id
        partial.name = partial.name or (delta.name or "")
        room = MAX_ARGUMENT_CHARS - partial.size
        fragment = delta.arguments[:room]
        if fragment:
            partial.arguments.append(fragment)
            partial.size += len(fragment)

    def calls(self, *, is_cut: bool = False) -> tuple[ToolCall, ...]:
        """Return the calls in order of their index. Absent arguments read ``{}``.

        Args:
            is_cut: The response ended before the model had: absent arguments of its last call may have been to come.

        Ids are unique within the response: a missing or repeated one is replaced by ``call_<index>``.
        """
        used: set[str] = set()
        last = max(self._partials, default=0)
        complete = []
        for index, partial in sorted(self._partials.items()):
            if not partial.name:
                continue
            call_id = partial.id if partial.id and partial.id not in used else f"call_{index}"
            while call_id in used:
                call_id += "_"
            used.add(call_id)
            absent = CUT_SHORT if is_cut and index == last else "{}"
            complete.append(ToolCall(call_id, partial.name, "".join(partial.arguments).strip() or absent))
        return tuple(complete)
