"""Which workflow is selected, with which settings: kept, changed while the service runs, used from the next turn on."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from voice_agent.channels.desk import SettingNotKept, SettingRefused, SettingsUnread, UnknownSetting
from voice_agent.dialogue.workflows.catalogue import Stored, WorkflowCatalogue
from voice_agent.service.setting_changes import told
from voice_agent.service.versions import AgentVersions
from voice_agent.store.protocol import ConversationStore, StoreUnavailable
from voice_agent.store.settings import KeepsSettings

log = logging.getLogger(__name__)

KEY = "agentic_workflow"
SCHEMA = 1
"""Version of the stored form."""


class WorkflowSettings:
    """Implements `voice_agent.channels.desk.SettingsDesk` over the workflows of an agent's newest version."""

    def __init__(self, store: ConversationStore, versions: AgentVersions) -> None:
        self._store = store if isinstance(store, KeepsSettings) else None
        self._versions = versions
        self._stored = Stored()
        self._changing = asyncio.Lock()
        versions.follow_settings(lambda: self._stored)

    async def load(self) -> None:
        """Read what was set, once the store is open. What cannot be read is left out, and said."""
        if self._store is None:
            return
        try:
            self._stored = _stored(await self._store.read_setting(KEY))
        except StoreUnavailable as fault:
            log.warning("the settings of workflows cannot be read, those of agent.yml are used: %s", fault)
        # Told now and not in the first caller's turn, if something is missing.
        _ = self._versions.current.workflows.current

    @property
    def _catalogue(self) -> WorkflowCatalogue:
        return self._versions.current.workflows.catalogue

    def all(self) -> dict[str, Any]:
        """Return every configuration, and which is selected."""
        return {
            "settings": [self.one(name) for name in self._catalogue.classes],
            "selected_configuration": self._versions.current.workflows.current.selected,
        }

    def one(self, name: str) -> dict[str, Any]:
        """Return one configuration with its schema.

        Raises:
            UnknownSetting: There is none of that name.
        """
        known = self._catalogue.classes.get(name)
        if known is None:
            raise UnknownSetting(name, tuple(self._catalogue.classes))
        try:
            value = _shown(self._versions.current.workflows.current.value_of(name).model_dump(mode="json"))
        except Exception as fault:  # noqa: BLE001 - a plugin's class may raise anything
            if not isinstance(fault, ValidationError):
                log.warning("the settings of %s cannot be shown: %s", name, type(fault).__name__)
            value = {}
        try:
            scheme = _shown(known.model_json_schema())
        except Exception as fault:  # noqa: BLE001 - as above
            log.warning("the settings of %s have no schema: %s", name, type(fault).__name__)
            scheme = {}
        return {"name": name, "value": value, "scheme": scheme}

    async def changes(self, limit: int) -> dict[str, Any]:
        """Return the newest changes, the newest first; see the Protocol.

        Raises:
            SettingsUnread: They cannot be read now.
        """
        if self._store is None:
            return {"kept": False, "changes": []}
        try:
            found = await self._store.setting_changes(KEY, limit=limit)
        except StoreUnavailable as fault:
            raise SettingsUnread(f"The record of changes cannot be read: {fault}") from fault
        return {"kept": True, "changes": [told(change) for change in found]}

    async def put(self, name: str, value: Mapping[str, Any], *, who: str) -> dict[str, Any]:
        """Check ``value``, keep it, and select the configuration.

        Raises:
            UnknownSetting: There is none of that name.
            SettingRefused: The value does not fit its schema; nothing has changed.
            SettingNotKept: It could not be kept; nothing has changed.
        """
        async with self._changing:
            known = self._catalogue.classes.get(name)
            if known is None:
                raise UnknownSetting(name, tuple(self._catalogue.classes))
            try:
                put = _shown(known.model_validate(value).model_dump(mode="json"))
            except ValidationError as fault:
                errors = fault.errors(include_url=False, include_input=False)
                raise SettingRefused([(".".join(map(str, e["loc"])), e["msg"]) for e in errors]) from None
            except Exception as fault:
                log.warning("the settings of %s cannot be checked or kept", name, exc_info=True)
                raise SettingRefused([("", f"it cannot be checked or kept: {type(fault).__name__}")]) from None
            values = {**self._stored.values, name: put}
            await self._keep(Stored(name, values), who)
            log.info("the workflow %s was selected", name, extra={"who": who})
            return self.one(name)

    async def clear(self, *, who: str) -> dict[str, Any]:
        """Take back all that was put: agent.yml decides again. Returns what `all` does then.

        Raises:
            SettingNotKept: It could not be kept; nothing has changed.
        """
        async with self._changing:
            if self._stored != Stored():
                await self._keep(Stored(), who)
                log.info("the settings of workflows were taken back, those of agent.yml are used", extra={"who": who})
            return self.all()

    async def _keep(self, changed: Stored, who: str) -> None:
        if self._store is not None:
            kept = {"schema": SCHEMA, "selected": changed.selected, "values": dict(changed.values)}
            try:
                await self._store.write_setting(KEY, kept, who=who)
            except StoreUnavailable as fault:
                raise SettingNotKept(f"Nothing has changed: {fault}") from fault
        self._stored = changed


def _shown(value: dict[str, Any]) -> dict[str, Any]:
    """Return ``value`` if it can be written as JSON: a plugin's model may hold what cannot.

    Raises:
        ValueError, TypeError: It cannot.
    """
    json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    return value


def _stored(value: Mapping[str, Any] | None) -> Stored:
    if value is None:
        return Stored()
    if value.get("schema") != SCHEMA:
        log.warning("the settings of workflows were kept by another version of this program and are left out")
        return Stored()
    selected, values = value.get("selected"), value.get("values")
    found = {k: v for k, v in values.items() if isinstance(v, dict)} if isinstance(values, dict) else {}
    return Stored(selected if isinstance(selected, str) else None, found)
