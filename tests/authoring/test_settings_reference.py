"""The page of all settings."""

from __future__ import annotations

import re
from pathlib import Path

from voice_agent.authoring.settings_reference import as_markdown
from voice_agent.config import Integrations, TurnTaking

ROOT = Path(__file__).parents[2]


def test_the_page_is_in_step() -> None:
    committed = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert committed == as_markdown(), "run: python -m voice_agent.authoring.settings_reference > docs/configuration.md"


def test_every_option_has_its_default_and_a_meaning() -> None:
    page = as_markdown()
    rows = re.findall(r"^\| `(\w[\w.]*)` \| (.+?) \| (.*) \|$", page, re.MULTILINE)
    assert {name for name, *_ in rows} >= TurnTaking.model_fields.keys() | {"provider", "persona"}
    assert all(default and meaning.endswith(".") for _, default, meaning in rows), rows
    assert f"| `port` | {Integrations().server.port} |" in page
    assert "| `persona` | required |" in page


def test_the_examples_files_name_pages_that_exist() -> None:
    files = [*ROOT.glob("*.yml"), *ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    for file in files:
        for page in re.findall(r"docs/[\w-]+\.md", file.read_text(encoding="utf-8")):
            assert (ROOT / page).is_file(), f"{file.name} names {page}"
