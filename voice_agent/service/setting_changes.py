"""What a change of the workflows' settings changed, field by field. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from voice_agent.store.settings import SettingChange

Stored = Mapping[str, Any]


def told(change: SettingChange) -> dict[str, Any]:
    """Return ``{at, who, selected, fields}``.

    ``selected`` is ``{from, to}``, None where the same configuration stayed selected; ``fields`` are
    ``{name, field, from, to}`` with the name of the configuration. What was not set before comes from None.
    """
    before, after = change.old or {}, change.new
    old, new = _values(before), _values(after)
    fields = [
        {"name": name, "field": field, "from": was, "to": now}
        for name in sorted(old.keys() | new.keys())
        for field in dict.fromkeys((*new.get(name, {}), *old.get(name, {})))
        if (was := old.get(name, {}).get(field)) != (now := new.get(name, {}).get(field))
    ]
    selected = {"from": before.get("selected"), "to": after.get("selected")}
    return {
        "at": change.at,
        "who": change.who,
        "selected": None if selected["from"] == selected["to"] else selected,
        "fields": fields,
    }


def _values(stored: Stored) -> dict[str, Mapping[str, Any]]:
    values = stored.get("values")
    return {k: v for k, v in values.items() if isinstance(v, Mapping)} if isinstance(values, Mapping) else {}
