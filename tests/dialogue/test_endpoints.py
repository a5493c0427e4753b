"""endpoints.yml of another service loads: what we have is used, the rest is named, nothing in it is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from voice_agent.diagnostics import Problem, Severity
from voice_agent.dialogue.endpoints import Endpoints, read_endpoints

GROUP = """
model_groups:
  - id: fast
    models:
      - {provider: openai, model: gpt-small, api_key: "${MY_KEY}", temperature: 0.2}
      - {provider: openai, model: gpt-other, api_base: "http://${HOST}/v1"}
nlg: {type: rephrase, llm: {model_group: fast}}
"""


def read(root: Path, text: str, **environ: str) -> tuple[Endpoints, list[Problem]]:
    path = root / "endpoints.yml"
    path.write_text(text, encoding="utf-8")
    problems: list[Problem] = []
    return read_endpoints(path, problems, environ), problems


def test_a_project_without_the_file_has_no_rephraser(tmp_path: Path) -> None:
    problems: list[Problem] = []
    assert read_endpoints(tmp_path / "endpoints.yml", problems, {}) == Endpoints()
    assert problems == []


def test_a_model_group_becomes_a_model_with_fallbacks_and_its_key_stays_in_the_environment(tmp_path: Path) -> None:
    endpoints, problems = read(tmp_path, GROUP, MY_KEY="s3cret", HOST="localhost")
    assert problems == []
    llm = endpoints.rephrase_llm
    assert llm is not None
    assert (llm.provider, llm.model, llm.api_key_env, llm.temperature) == ("openai", "gpt-small", "MY_KEY", 0.2)
    assert [(f.model, f.base_url) for f in llm.fallbacks] == [("gpt-other", "http://localhost/v1")]
    assert "s3cret" not in repr(endpoints)


@pytest.mark.parametrize("environ", [{"HOST": "h"}, {"MY_KEY": "k"}])
def test_a_variable_that_is_not_set_leaves_the_group_out_with_a_warning(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    endpoints, problems = read(tmp_path, GROUP, **environ)
    assert (endpoints.rephrase, endpoints.rephrase_llm, dict(endpoints.model_groups)) == (True, None, {})
    assert [p.id for p in problems] == ["endpoints.missing_variable", "endpoints.unknown_model_group"]


def test_a_key_written_into_the_file_is_not_used_and_not_repeated(tmp_path: Path) -> None:
    endpoints, problems = read(tmp_path, GROUP.replace("${MY_KEY}", "sk-123"), HOST="h")
    assert endpoints.rephrase_llm is None
    assert problems[0].id == "endpoints.api_key"
    assert "sk-123" not in str(problems)


def test_what_is_not_acted_on_is_named_once_each_with_its_line(tmp_path: Path) -> None:
    text = "tracker_store: {type: SQL}\nevent_broker: {type: kafka}\ntracing: {type: otlp}\nmetrics: {}\nzebra: 1\n"
    _, problems = read(tmp_path, text)
    assert [(p.id, p.line) for p in problems] == [
        *(("endpoints.unused", line) for line in (1, 2, 3, 4)),
        ("endpoints.unknown_key", 5),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "nlg: {type: http, url: x}",
        "nlg: {type: rephrase, llm: {model_group: fsat}}",
        "model_groups: [{id: none, models: []}]",
        "model_groups: [{id: odd, models: [{provider: openai}]}]",
    ],
)
def test_nothing_in_it_is_worse_than_a_warning(tmp_path: Path, text: str) -> None:
    _, problems = read(tmp_path, text)
    assert len(problems) == 1
    assert problems[0].severity is Severity.WARNING


@pytest.mark.parametrize(
    ("store", "remedy"),
    [
        ("{type: sqlite, path: calls.db}", 'Write `store: {path: "calls.sqlite3"}`'),
        ("{type: SQL, dialect: sqlite, db: data/rasa.db}", 'Write `store: {path: "data/rasa.sqlite3"}`'),
        ("{type: SQL, dialect: postgresql, db: rasa}", ""),
        ("{type: redis, url: localhost}", ""),
        ("mongod", ""),
    ],
)
def test_a_file_of_conversations_is_not_taken_over_but_told_how_to_be_named(
    tmp_path: Path, store: str, remedy: str
) -> None:
    _, problems = read(tmp_path, f"tracker_store: {store}\n")
    (problem,) = problems
    assert problem.severity is Severity.WARNING
    assert problem.remedy.startswith(remedy) and bool(problem.remedy) == bool(remedy)
