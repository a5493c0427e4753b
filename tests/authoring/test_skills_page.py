"""The skill that docs/skills.md goes through is a skill that works, as it is written there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from voice_agent.authoring.schemas import schema
from voice_agent.cli import cli

PAGE = (Path(__file__).parents[2] / "docs" / "skills.md").read_text(encoding="utf-8")
KITCHEN = """
class kitchen:
    @staticmethod
    async def order(pizza, how_many, key):
        assert key and how_many == 2
        return "42"


"""
TESTS: dict[str, Any] = {
    "conversations": [
        {
            "name": "An order",
            "model": "live",
            "steps": [
                {"say": "I would like to order a pizza", "expect": {"said": {"response": "utter_ask_pizza"}}},
                {"say": "salami please", "expect": {"said": {"response": "utter_ask_how_many"}}},
                {"say": "two", "expect": {"said": "That is 2 times salami.", "confirming": "place_order"}},
                {
                    "say": "yes please",
                    "expect": {
                        "ran": {"place_order": {"pizza": "salami", "how_many": 2}},
                        "said": "Your order number is 4 2.",
                    },
                },
            ],
        }
    ]
}


def written(file: str) -> str:
    """Return the example that the page gives for ``file``."""
    found = re.search(rf"`skills/take_order/{re.escape(file)}`:\n\n```\w+\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None, file
    return found.group(1)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    assert CliRunner().invoke(cli, ["new", "pizzeria", "--path", str(tmp_path)]).exit_code == 0
    root = tmp_path / "pizzeria"
    skill = root / "skills" / "take_order"
    skill.mkdir()
    for file in ("memory.yml", "responses.yml", "skill.md"):
        (skill / file).write_text(written(file))
    # The page leaves "your own system" to the reader.
    (skill / "tools.py").write_text(written("tools.py").replace("\n\n@tool", f"\n{KITCHEN}@tool"))
    (root / "tests" / "order.yml").write_text(yaml.safe_dump(TESTS, sort_keys=False))
    return root


def test_the_skill_has_no_problem(project: Path) -> None:
    assert CliRunner().invoke(cli, ["check", str(project)]).output == "no problems\n"


@pytest.mark.models
def test_the_skill_takes_an_order_after_a_yes(project: Path) -> None:
    result = CliRunner().invoke(cli, ["test", str(project / "tests" / "order.yml")])
    assert (result.exit_code, "1 passed" in result.output) == (0, True), result.output


def test_every_key_of_the_files_is_named_on_the_page() -> None:
    keys = set(schema("skill")["properties"])
    for step in schema("block")["properties"]["steps"]["items"]["anyOf"]:
        keys |= set(step["properties"]) - {"arguments", "description"}
    assert {key for key in keys if f"`{key}" not in PAGE and f"{key}:" not in PAGE} == set()
