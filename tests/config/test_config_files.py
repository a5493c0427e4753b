"""Settings load, older spellings included; every fault is named with its file, its line and a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.dialogue_projects import write_project
from voice_agent.config_files import ProjectConfig, load_config
from voice_agent.diagnostics import Problem, ProjectError, Severity

PERSONA = "agent: {id: t, persona: Calm.}\n"


def load(tmp_path: Path, environ: dict[str, str] | None = None, **files: str) -> ProjectConfig:
    named = {name.replace("_yml", ".yml"): text for name, text in files.items()}
    return load_config(write_project(tmp_path, named), environ or {})


def faults(tmp_path: Path, environ: dict[str, str] | None = None, **files: str) -> tuple[Problem, ...]:
    with pytest.raises(ProjectError) as caught:
        load(tmp_path, environ, **files)
    return caught.value.problems


def test_two_short_files_are_enough(tmp_path: Path) -> None:
    config = load(tmp_path, agent_yml=PERSONA, integrations_yml="")
    assert (config.agent.agent.persona, config.integrations.llm.provider) == ("Calm.", "embedded")
    assert config.problems == ()


def test_missing_files_and_a_missing_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match=r"is no project: .*voice-agent new"):
        load_config(tmp_path, {})
    (tmp_path / "agent.yml").write_text(PERSONA)
    with pytest.raises(ProjectError) as caught:
        load_config(tmp_path, {})
    assert {p.id for p in caught.value.problems} == {"integrations.missing"}
    with pytest.raises(ProjectError, match="not a directory"):
        load_config(tmp_path / "nowhere", {})


def test_the_faults_of_both_files_come_together_with_their_lines(tmp_path: Path) -> None:
    found = faults(
        tmp_path,
        agent_yml="agent:\n  id: t\n  persona: Calm.\n  langauge: en\nrules:\n  - Never: lie\ntool_timeout: soon\n",
        integrations_yml="llm:\n  modell: x\n  temperature: 9\nserver:\n  port: many\n",
    )
    assert {(p.id, p.path.name if p.path else "", p.line) for p in found} == {
        ("config.rule_is_mapping", "agent.yml", 6),
        ("config.unknown_key", "agent.yml", 4),
        ("config.value.float_parsing", "agent.yml", 7),
        ("integrations.unknown_key", "integrations.yml", 2),
        ("integrations.value.less_than_equal", "integrations.yml", 3),
        ("integrations.value.int_parsing", "integrations.yml", 5),
    }
    by_line = {(p.path.name, p.line): p for p in found if p.path and p.id.endswith("unknown_key")}
    assert "'language'" in by_line["agent.yml", 4].remedy
    assert "'model'" in by_line["integrations.yml", 2].remedy


def test_a_persona_is_the_one_thing_that_must_be_there(tmp_path: Path) -> None:
    (fault,) = faults(tmp_path, agent_yml="agent:\n  id: t\n")
    assert (fault.id, fault.line) == ("config.agent.missing_persona", 1)


def test_a_rule_with_a_colon_is_explained(tmp_path: Path) -> None:
    found = faults(tmp_path, agent_yml=PERSONA + "rules:\n  - Be brief\n  - Note: never shout\n")
    (fault,) = [p for p in found if p.id == "config.rule_is_mapping"]
    assert (fault.line, "quotes" in fault.remedy, "'Note'" in fault.message) == (4, True, True)


def test_rules_and_references_may_stand_inside_the_agent_section(tmp_path: Path) -> None:
    inside = "agent:\n  persona: Calm.\n  rules: [Be brief]\n  references: {instructions: Quote exactly.}\n"
    config = load(tmp_path, agent_yml=inside)
    assert (config.agent.rules, config.agent.references_instructions) == (("Be brief",), "Quote exactly.")


def test_the_same_key_in_both_places_is_an_error(tmp_path: Path) -> None:
    found = faults(tmp_path, agent_yml="agent:\n  persona: Calm.\n  rules: [a]\nrules: [b]\n")
    assert ("config.duplicate", 3) in {(p.id, p.line) for p in found}


def test_older_style_rules_are_taken_over(tmp_path: Path) -> None:
    config = load(tmp_path, agent_yml=PERSONA + "prompts:\n  text_rules: |\n    - Be brief\n    - Be kind\n")
    assert config.agent.orchestrator.text_rules == ("Be brief", "Be kind")


def test_what_is_not_acted_on_is_a_warning(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        agent_yml="agent:\n  persona: Calm.\n  voice: {enabled: true}\nnlg: {type: rephrase}\nzebra: 1\n",
        integrations_yml="tracing: {}\nchannels:\n  inspector: {enabled: true}\n",
    )
    assert {(p.id, p.line, p.severity) for p in config.problems} == {
        ("config.unused", 2, Severity.WARNING),
        ("config.unused", 4, Severity.WARNING),
        ("config.unknown_key", 5, Severity.WARNING),
        ("integrations.unused", 1, Severity.WARNING),
        ("integrations.unknown_channel", 3, Severity.WARNING),
    }


def test_older_channel_keys_become_turn_taking(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        integrations_yml="""
            channels:
              websocket:
                enabled: true
                server_url: agent.example.com
                asr: {name: deepgram, language_map: {en: {model: x}}}
                tts: {name: piper}
                interruptions: {enabled: false, min_words: 3}
                silence_timeout: 5.5
            """,
    )
    turn = config.integrations.channels.websocket.turn_taking
    assert (turn.barge_in, turn.min_words, turn.silence_timeout_s) == (False, 3, 5.5)
    assert {p.id for p in config.problems} == {"integrations.engine_fallback", "integrations.unused"}
    (fallback,) = [p for p in config.problems if p.id == "integrations.engine_fallback"]
    assert ("deepgram" in fallback.message, "whisper" in fallback.message) == (True, True)


def test_a_text_channel_says_that_it_takes_no_turns(tmp_path: Path) -> None:
    text = "channels:\n  text:\n    enabled: false\n    silence_timeout: 5\n    turn_taking: {min_words: 3}\n"
    config = load(tmp_path, integrations_yml=text)
    assert config.integrations.channels.text.enabled is False
    assert {(p.id, p.line) for p in config.problems} == {("integrations.unused", 4), ("integrations.unused", 5)}


def test_a_newer_key_wins_over_an_older_one(tmp_path: Path) -> None:
    text = "channels:\n  websocket:\n    silence_timeout: 5\n    turn_taking: {silence_timeout_s: 9}\n"
    config = load(tmp_path, integrations_yml=text)
    assert config.integrations.channels.websocket.turn_taking.silence_timeout_s == 9


def test_an_unknown_engine_falls_back_to_the_local_one(tmp_path: Path) -> None:
    text = "speech:\n  stt: {name: deepgram, model: nova}\n  tts: {name: eleven, voice: x}\n"
    config = load(tmp_path, integrations_yml=text)
    assert (config.integrations.speech.stt.name, config.integrations.speech.tts.name) == ("whisper", "piper")
    assert [p.line for p in config.problems] == [2, 3]


def test_variables_are_filled_in_and_a_missing_one_is_named(tmp_path: Path) -> None:
    text = "llm: {provider: openai, model: '${MODEL}', base_url: '${URL:-http://localhost:1}/v1'}\n"
    config = load(tmp_path, {"MODEL": "m"}, integrations_yml=text)
    assert (config.integrations.llm.model, config.integrations.llm.base_url) == ("m", "http://localhost:1/v1")
    (fault,) = faults(tmp_path, {}, integrations_yml=text)
    assert ("MODEL" in fault.message, fault.line) == (True, 1)


def test_the_value_of_a_variable_is_not_expanded_again(tmp_path: Path) -> None:
    config = load(tmp_path, {"A": "${B}", "B": "x"}, integrations_yml="llm: {model: '${A}'}\n")
    assert config.integrations.llm.model == "${B}"


def test_a_missing_key_names_its_variable(tmp_path: Path) -> None:
    text = "llm:\n  provider: openai\n  model: m\n  api_key_env: OPENAI_API_KEY\n"
    (fault,) = faults(tmp_path, integrations_yml=text)
    assert (fault.id, fault.line) == ("integrations.missing_key", 4)
    assert "OPENAI_API_KEY" in fault.remedy
    assert load(tmp_path, {"OPENAI_API_KEY": "k"}, integrations_yml=text).integrations.llm.provider == "openai"


@pytest.mark.parametrize(
    "text", ["- a\n- b\n", "just text\n", "a: [unclosed\n", "a: &x [*x]\n", "\x00", "[" * 3000, "? [a]\n: b\n"]
)
def test_a_file_that_is_no_mapping_is_refused_in_words(tmp_path: Path, text: str) -> None:
    assert faults(tmp_path, agent_yml=text)


def test_a_file_in_another_encoding_is_refused_in_words(tmp_path: Path) -> None:
    write_project(tmp_path, {})
    (tmp_path / "agent.yml").write_bytes("agent: {persona: Übung}".encode("latin-1"))
    with pytest.raises(ProjectError, match="UTF-8"):
        load_config(tmp_path, {})


def test_a_bomb_of_aliases_is_refused(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    found = faults(tmp_path, agent_yml="\n".join(lines) + "\n")
    assert "yaml.too_large" in {p.id for p in found}
