"""Which workflows there are, and which one a turn uses.

Weakest first: the settings of agent.yml, what was selected through the settings API, what the active skill says.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from voice_agent.config import AgentFile
from voice_agent.dialogue.workflows.mantle import CoreAgenticWorkflowConfig
from voice_agent.dialogue.workflows.protocol import AgenticWorkflowConfig
from voice_agent.dialogue.workflows.react import ReActAgentConfig

log = logging.getLogger(__name__)

ConfigClass = type[AgenticWorkflowConfig]
BUILT_IN: tuple[ConfigClass, ...] = (CoreAgenticWorkflowConfig, ReActAgentConfig)
DEFAULT = CoreAgenticWorkflowConfig.__name__


@dataclass(frozen=True, slots=True)
class Stored:
    """What was set through the settings API.

    Attributes:
        selected: Name of the selected configuration; None if nothing was ever selected.
        values: By name, as they were put.
    """

    selected: str | None = None
    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


class WorkflowCatalogue:
    """The configurations a project may use: those built in, and those of its plugins. Immutable.

    Args:
        agent: ``workflow:`` and ``react:`` of its agent.yml.
    """

    def __init__(self, agent: AgentFile, classes: Iterable[ConfigClass] = BUILT_IN) -> None:
        self._agent = agent
        self.classes: Mapping[str, ConfigClass] = {one.__name__: one for one in classes}
        self._by_workflow = {_short(one): name for name, one in self.classes.items()}

    @property
    def workflows(self) -> tuple[str, ...]:
        """What ``workflow:`` may say."""
        return tuple(dict.fromkeys((*self._by_workflow, *self.classes)))

    def name_of(self, workflow: str) -> str | None:
        """Return the configuration that ``workflow:`` means by a short or a full name."""
        return workflow if workflow in self.classes else self._by_workflow.get(workflow)

    def default_of(self, name: str) -> AgenticWorkflowConfig:
        """Return a configuration as agent.yml leaves it.

        Raises:
            ValidationError: A plugin's configuration has no defaults.
        """
        own = self._agent.react.model_dump() if name == ReActAgentConfig.__name__ else {}
        return self.classes[name].model_validate(own)

    def resolve(self, stored: Stored) -> Selection:
        """Return what turns use from now on. What no longer fits is warned of and left out; never raises."""
        values: dict[str, AgenticWorkflowConfig] = {}
        for name, value in stored.values.items():
            if name not in self.classes:
                continue
            try:
                values[name] = self.classes[name].model_validate(value)
            except Exception as fault:  # noqa: BLE001 - a plugin's class may raise anything
                log.warning("the stored settings of %s no longer fit and are left out: %s", name, type(fault).__name__)
        selected = stored.selected
        if selected is not None and selected not in self.classes:
            log.warning("the workflow %s is selected but not installed: the default one is used", selected)
            selected = DEFAULT
        if selected is None:
            selected = self.name_of(self._agent.workflow) or DEFAULT
        return Selection(self, selected, values)


class Selection:
    """What one turn uses, as it was when the turn began. Immutable."""

    def __init__(
        self, catalogue: WorkflowCatalogue, selected: str, values: Mapping[str, AgenticWorkflowConfig]
    ) -> None:
        self._catalogue, self.selected, self._values = catalogue, selected, values

    def value_of(self, name: str) -> AgenticWorkflowConfig:
        """Return the configuration ``name`` as stored, else as agent.yml leaves it.

        Raises:
            ValidationError: Nothing is stored and it has no defaults.
        """
        found = self._values.get(name)
        return self._catalogue.default_of(name) if found is None else found

    def config_for(self, workflow: str | None) -> AgenticWorkflowConfig:
        """Return the configuration of a turn whose active skill says ``workflow`` (None: nothing)."""
        name = self.selected if workflow is None else self._catalogue.name_of(workflow) or self.selected
        try:
            return self.value_of(name)
        except Exception as fault:  # noqa: BLE001 - a plugin's class may raise anything
            log.warning("the workflow %s cannot be used (%s): the default one is", name, type(fault).__name__)
            return CoreAgenticWorkflowConfig()


class WorkflowChoice:
    """The selection as it is now; shared by all conversations of an agent, and replaced by the settings API.

    Args:
        stored: Returns what was set.
    """

    def __init__(self, catalogue: WorkflowCatalogue, stored: Callable[[], Stored] = Stored) -> None:
        self.catalogue, self._stored = catalogue, stored
        self._last: tuple[Stored, Selection] | None = None

    def follow(self, stored: Callable[[], Stored]) -> None:
        """Use what ``stored`` returns, from the next turn on."""
        self._stored = stored

    @property
    def current(self) -> Selection:
        stored = self._stored()
        if self._last is None or self._last[0] is not stored:
            self._last = stored, self.catalogue.resolve(stored)
        return self._last[1]


def _short(one: ConfigClass) -> str:
    return one.workflow or one.__name__
