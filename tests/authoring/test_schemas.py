"""JSON schemas: current, valid, in step with the readers, and fit for the example project."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from tests.support.dialogue_projects import block, skill, write_project
from voice_agent.authoring import schemas
from voice_agent.cli import cli
from voice_agent.dialogue.loader import load_project
from voice_agent.yaml_source import YamlFile

ROOT = Path(__file__).parents[2]


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schemas.schema(name))


def faults(name: str, text: str) -> list[str]:
    value = YamlFile(text, Path("x.yml")).value
    plain = json.loads(json.dumps({} if value is None else value))
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in validator(name).iter_errors(plain)]


def project_files(root: Path) -> Iterator[tuple[str, str, str]]:
    """Yield (what, schema, text) of every file, front matter and block of a project."""
    for name in ("agent", "integrations", "endpoints", "memory", "responses"):
        if (root / f"{name}.yml").is_file():
            yield f"{name}.yml", name, (root / f"{name}.yml").read_text()
    for folder in sorted((root / "skills").iterdir()):
        for name, kind in (("memory", "skill-memory"), ("responses", "responses")):
            if (folder / f"{name}.yml").is_file():
                yield f"{folder.name}/{name}.yml", kind, (folder / f"{name}.yml").read_text()
        text = (folder / "skill.md").read_text()
        yield f"{folder.name}/skill.md", "skill", text.split("---", 2)[1]
        for fenced in re.findall(r"^:::ordered_block.*?\n(.*?)^:::", text, re.DOTALL | re.MULTILINE):
            yield f"{folder.name} block", "block", fenced
    for folder in ("tests", "conversations"):
        for path in sorted((root / folder).glob("*.yml")):
            if "\nconversations:" in f"\n{path.read_text()}":
                yield f"{folder}/{path.name}", "conversations", path.read_text()


@pytest.mark.parametrize("name", schemas.KINDS)
def test_the_committed_schema_is_current(name: str) -> None:
    committed = (ROOT / "docs" / "schemas" / f"{name}.json").read_text(encoding="utf-8")
    assert committed == schemas.as_text(name), "run: voice-agent schema --write docs/schemas"


@pytest.mark.parametrize("name", schemas.KINDS)
def test_each_schema_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(schemas.schema(name))


def test_the_example_project_is_valid() -> None:
    found = {what: bad for what, kind, text in project_files(ROOT) if (bad := faults(kind, text))}
    assert found == {}


def test_a_new_project_with_a_new_skill_is_valid(tmp_path: Path) -> None:
    CliRunner().invoke(cli, ["new", "desk", "--path", str(tmp_path)])
    CliRunner().invoke(cli, ["new", "skill", "change_address", "--path", str(tmp_path / "desk")])
    files = list(project_files(tmp_path / "desk"))
    assert {kind for _, kind, _ in files} >= {"agent", "integrations", "memory", "skill-memory", "responses", "skill",
                                              "block", "conversations"}  # fmt: skip
    assert {what: bad for what, kind, text in files if (bad := faults(kind, text))} == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("agent", "agent: {persona: 5}"),
        ("agent", "agent: {name: x}"),
        ("agent", "agent: {persona: x}\nrules: [{a: b}]"),
        ("integrations", "llm: {temprature: 1}"),
        ("integrations", "server: {port: 70000}"),
        ("memory", "name: {type: txt}"),
        ("memory", "name: {llm_settable: true}"),
        ("skill-memory", "public: {a: text}"),
        ("skill-memory", "schema: {public: {a: {seed: true}}}"),
        ("responses", "responses: {greet: hello}"),
        ("responses", "responses: {utter_greet: [{condition: a}]}"),
        ("skill", "name: x"),
        ("skill", "name: x\ndescription: y\nrouting: {managed: true}"),
        ("skill", "name: x\ndescription: y\ntool_constraints: [{a: {require: b}}]"),
        ("block", "steps: []"),
        ("block", "steps: [{id: a, acton: utter_b}]"),
        ("block", "steps: [{id: a, action: utter_b, collect: c}]"),
        ("block", "steps: [{id: a, link: '@skill.b', next: c}]"),
        ("block", "steps: [{id: a, noop: true, next: [{if: x}]}]"),
        ("endpoints", "model_groups: [{id: a, models: [{provider: x, model: y, api_key: secret}]}]"),
        ("conversations", "conversations: [{name: x, steps: [{say: y, expct: {}}]}]"),
        ("conversations", "conversations: [{name: x, steps: []}]"),
    ],
)
def test_slips_are_marked(name: str, text: str) -> None:
    assert faults(name, text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("agent", "agent: {persona: x, rules: [a], voice: {enabled: true}}\nprompts: {text_rules: be brief}"),
        ("integrations", "server: {port: '${PORT:-8080}'}\nchannels: {websocket: {interruptions: {enabled: true}}}"),
        ("integrations", "mcp_servers: []\nchannels: {twilio_media_streams: {enabled: true}}"),
        ("memory", "a: text\nb: {type: categorical, enum_values: [x, 1, true]}\nc:"),
        ("responses", "responses: {utter_a: x, utter_b: [x, {text: y, condition: z}], utter_c: {text: z}}"),
        ("skill", "name: x\ndescription: y\nrequires: true\ncomplete_when: {condition: a, criteria: [b]}"),
        ("block", "steps: [{action: action_listen}, {id: END}, {call: block.x}, {link: skill.y}]"),
        ("conversations", "conversations: [{name: x, steps: [{say: y, model: [z, {a: }, [{b: {}}, c]]}]}]"),
        ("conversations", "conversations: [{name: x, steps: [{expect: {said: [a, {response: utter_b}], skill: c}}]}]"),
        ("conversations", "conversations: [{name: x, steps: [{expect: {ran: {a: {b: 1}, c: }}}, {wait: 5 min}]}]"),
    ],
)
def test_short_and_older_spellings_are_valid(name: str, text: str) -> None:
    assert faults(name, text) == []


def _properties(node: Any, *path: str) -> set[str]:
    """Return the keys that an object somewhere in a schema may have; ``path`` names it by its own keys."""
    for key in path:
        node = next(found for found in _find(node, key))
    return set(node["properties"])


def _find(node: Any, key: str) -> Iterator[Any]:
    if isinstance(node, dict):
        if key in node.get("properties", {}):
            inner = node["properties"][key]
            yield from (n for n in [inner, *inner.get("anyOf", [])] if "properties" in n)
        for value in node.values():
            yield from _find(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from _find(value, key)


SKILL = "skills/a/skill.md"
FIELD = schemas.schema("memory")["patternProperties"]["^[A-Za-z_]\\w*$"]["anyOf"][0]
READERS: tuple[tuple[str, dict[str, str], set[str]], ...] = (
    ("a field", {"memory.yml": "x: {zzzz: 1}\n"}, _properties(FIELD)),
    ("a variant", {"responses.yml": "responses:\n  utter_x: {text: a, zzzz: 1}\n"},
     {"text", "condition", "metadata", "channel", "interruptible", "rephrase", "while_uninterruptible", "record"}),
    ("front matter", {SKILL: skill("Do.\n", zzzz="1")}, _properties(schemas.schema("skill"))),
    ("a constraint", {SKILL: skill("Do.\n", tool_constraints="[{x: {zzzz: 1}}]")},
     _properties(schemas.schema("skill")["properties"]["tool_constraints"]["items"]["patternProperties"]["."])),
    ("a confirmation", {SKILL: skill("Do.\n", tool_constraints="[{x: {requires_confirmation: {zzzz: 1}}}]")},
     _properties(schemas.schema("skill"), "requires_confirmation")),
    ("a block", {SKILL: skill(":::ordered_block id=m\nzzzz: 1\nsteps:\n  - action: utter_greet\n:::\n")},
     _properties(schemas.schema("block"))),
    *((kind, {SKILL: skill(block(f"- {kind}: x\n  zzzz: 1"))},
       set(next(s for s in schemas.schema("block")["properties"]["steps"]["items"]["anyOf"]
                if kind in s["properties"])["properties"]) | {"next"})
      for kind in ("instructions", "collect", "action", "execute_tool", "noop", "set_memory", "call", "link")),
    ("endpoints", {"endpoints.yml": "zzzz: 1\n"}, _properties(schemas.schema("endpoints"))),
    ("a model group", {"endpoints.yml": "model_groups: [{id: a, zzzz: 1}]\n"},
     set(schemas.schema("endpoints")["properties"]["model_groups"]["items"]["properties"])),
)  # fmt: skip


@pytest.mark.parametrize(("what", "files", "keys"), READERS, ids=[what for what, _, _ in READERS])
def test_the_reader_knows_the_keys_of_the_schema_and_no_others(
    what: str, files: dict[str, str], keys: set[str], tmp_path: Path
) -> None:
    base = {"responses.yml": "responses:\n  utter_greet: Hi.\n", SKILL: skill("Do.\n")}
    _, problems = load_project(write_project(tmp_path, {**base, **files}))
    (told,) = [p.remedy for p in problems if p.id.endswith(".unknown_key") and "'zzzz'" in p.message]
    known = set(told.removeprefix("Known keys: ").rstrip(".").split(", "))
    only_read = {"tracker_store", "event_broker", "tracing", "metrics", "lock_store", "action_endpoint", "vector_store"}
    seldom = {"llm_settable"} if what == "a field" else only_read if what == "endpoints" else set()
    assert known - seldom == keys - seldom


def test_options_are_described_by_the_text_under_them() -> None:
    defined = schemas.schema("integrations")["$defs"]
    assert defined["TurnTaking"]["properties"]["pause_ms"]["description"].startswith("Silence after which")


def test_the_command_lists_prints_and_writes_them(tmp_path: Path) -> None:
    assert "agent.yml" in CliRunner().invoke(cli, ["schema"]).output
    printed = CliRunner().invoke(cli, ["schema", "memory"]).output
    assert json.loads(printed) == schemas.schema("memory")
    assert CliRunner().invoke(cli, ["schema", "--write", str(tmp_path / "new")]).exit_code == 0
    assert {p.stem for p in (tmp_path / "new").iterdir()} == set(schemas.KINDS)
    wrong = CliRunner().invoke(cli, ["schema", "memry"])
    assert (wrong.exit_code, "Did you mean 'memory'?" in wrong.output) == (2, True)


def test_yaml_is_read_for_the_schemas_as_the_loader_reads_it() -> None:
    # "on" stays a word here; a YAML 1.1 reader would make it true and the schemas would be of no use.
    assert YamlFile("a: {on: activate}", Path("x")).value == {"a": {"on": "activate"}}
    assert yaml.safe_load("a: {on: activate}") == {"a": {True: "activate"}}
