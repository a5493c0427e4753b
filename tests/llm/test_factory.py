"""A model is built from options, or the operator is told what to mend."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from typing import Any

import pytest

from voice_agent.config import LlmOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.llm.factory import build_model


def test_the_default_needs_no_key() -> None:
    assert build_model(LlmOptions()).name == "embedded"


def test_a_remote_model_is_named_by_provider_and_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert build_model(LlmOptions(provider="anthropic", model="claude-x")).name == "anthropic/claude-x"


def test_an_unknown_provider_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(RemediableError, match="'antropic' is unknown") as caught:
        build_model(LlmOptions(provider="antropic", model="x"))
    assert "'anthropic'" in caught.value.remedy


def test_an_unknown_embedded_model_is_an_error() -> None:
    with pytest.raises(RemediableError, match="no embedded model 'gpt'"):
        build_model(LlmOptions(model="gpt"))


@pytest.mark.parametrize(("named", "variable"), [("MY_KEY", "MY_KEY"), (None, "OPENAI_API_KEY")])
def test_a_missing_key_is_an_error_that_names_its_variable(
    monkeypatch: pytest.MonkeyPatch, named: str | None, variable: str
) -> None:
    monkeypatch.delenv(variable, raising=False)
    with pytest.raises(RemediableError, match=variable):
        build_model(LlmOptions(provider="openai", model="m", api_key_env=named))


def test_a_key_that_was_named_is_required_even_with_a_server_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(RemediableError, match="MY_KEY"):
        build_model(LlmOptions(provider="openai", model="m", base_url="http://127.0.0.1:1/v1", api_key_env="MY_KEY"))


def test_a_missing_key_of_a_fallback_is_found_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    with pytest.raises(RemediableError, match="GROQ_API_KEY"):
        build_model(LlmOptions(fallbacks=(LlmOptions(provider="groq", model="m"),)))


@pytest.mark.parametrize(
    ("package", "provider", "extra"), [("litellm", "openai", "litellm"), ("onnxruntime", "embedded", "embedded")]
)
def test_a_missing_package_is_an_error_that_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, package: str, provider: str, extra: str
) -> None:
    found = importlib.util.find_spec

    def without(name: str, *rest: Any) -> Any:
        return None if name == package else found(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", without)
    with pytest.raises(RemediableError, match=rf"voice-agent\[{extra}\]"):
        build_model(LlmOptions(provider=provider))


_BUILD = """
import sys
from voice_agent.config import LlmOptions
from voice_agent.llm.factory import build_model
build_model(LlmOptions())
build_model(LlmOptions(provider="openai", model="m", base_url="http://127.0.0.1:1/v1"))
print(sorted({"litellm", "openai", "onnxruntime", "tokenizers", "numpy"} & set(sys.modules)))
"""

_IMPORT = """
import os, socket
def refuse(*_):
    raise AssertionError("network at import")
socket.socket.connect = socket.getaddrinfo = refuse
from voice_agent.llm.litellm_model import import_litellm
import_litellm()
"""


def test_building_a_model_imports_no_engine() -> None:
    done = subprocess.run([sys.executable, "-c", _BUILD], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_importing_litellm_touches_no_network_and_says_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORT], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")
