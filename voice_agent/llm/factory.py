"""From options to a model that can be asked."""

from __future__ import annotations

import importlib.util
import json
import os
import re
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

from voice_agent.config import LlmOptions
from voice_agent.diagnostics import RemediableError, did_you_mean, missing_package
from voice_agent.llm.deadlines import DeadlinedModel
from voice_agent.llm.fallback import Candidate, FallbackModel
from voice_agent.llm.protocol import LanguageModel
from voice_agent.llm.tool_binding import ToolBinding

if TYPE_CHECKING:
    from voice_agent.llm.litellm_model import LiteLlmModel

# The variables that providers' own documentation names for their keys. A provider that is not
# listed here is either keyless or has more than one variable; litellm then reads them itself.
_KEY_VARIABLES = {
    "anthropic": "ANTHROPIC_API_KEY",
    "azure": "AZURE_API_KEY",
    "cerebras": "CEREBRAS_API_KEY",
    "cohere": "COHERE_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "fireworks_ai": "FIREWORKS_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "groq": "GROQ_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "xai": "XAI_API_KEY",
}


def build_model(options: LlmOptions, *, today: Callable[[], date] = date.today) -> LanguageModel:
    """Build the configured model with its deadlines, retries and fallbacks. Loads nothing yet.

    Args:
        today: The date from which the embedded model counts "tomorrow".

    Raises:
        RemediableError: An unknown provider or embedded model, a missing key (names the
            environment variable) or a missing package (names the extra to install).
    """
    chain = (options, *options.fallbacks)
    return FallbackModel([Candidate(_build_one(one, today), one.retries) for one in chain])


def _build_one(options: LlmOptions, today: Callable[[], date]) -> LanguageModel:
    limits = options.first_token_timeout_s, options.between_tokens_timeout_s
    if options.provider == "embedded":
        # It reads what it may do from the request's scope and has calls of its own.
        return _deadlined(_embedded(options, today), *limits)
    remote = _remote(options)
    # Deadlines stand below: a model that thinks unheard is not a silent one.
    return ToolBinding(_deadlined(remote, *limits), options.tool_calls, remote)


def _deadlined(model: LanguageModel, first_token_s: float, between_tokens_s: float) -> LanguageModel:
    return DeadlinedModel(model, first_token_s=first_token_s, between_tokens_s=between_tokens_s)


def _embedded(options: LlmOptions, today: Callable[[], date]) -> LanguageModel:
    if options.model != "minilm":
        raise RemediableError(
            f"There is no embedded model {options.model!r}.", "Set llm.model to 'minilm', or choose another provider."
        )
    _require("onnxruntime", "embedded")
    _require("tokenizers", "embedded")
    from voice_agent.llm.embedded.model import EmbeddedModel

    return EmbeddedModel(today=today)


def _remote(options: LlmOptions) -> LiteLlmModel:
    _require("litellm", "litellm")
    providers = _known_providers()
    if providers and options.provider not in providers:
        hint = did_you_mean(options.provider, {*providers, "embedded"})
        raise RemediableError(
            f"The language model provider {options.provider!r} is unknown.",
            f"{hint} Set llm.provider to 'embedded' or to a provider that litellm knows.".strip(),
        )
    from voice_agent.llm.litellm_model import LiteLlmModel

    return LiteLlmModel(options, _key(options))


def _key(options: LlmOptions) -> str | None:
    variable = options.api_key_env or _KEY_VARIABLES.get(options.provider)
    if variable is None:
        return None
    key = os.environ.get(variable)
    if key:
        return key
    if options.api_key_env is None and options.base_url is not None:
        return None
    raise RemediableError(
        f"The language model {options.provider}/{options.model} needs a key, and {variable} is not set.",
        f"Set the environment variable {variable}, or set llm.provider to 'embedded', which needs no key.",
    )


def _require(module: str, extra: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise missing_package(module, extra)


def _known_providers() -> frozenset[str]:
    """Return litellm's provider names, read from its files: importing it would take seconds.

    Empty when the files are not where they were; then a wrong name is reported by the first call.
    """
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return frozenset()
    root = Path(spec.origin).parent
    try:
        source = (root / "types" / "utils.py").read_text(encoding="utf-8")
        body = re.search(r"^class LlmProviders\(.*?\):\n((?:    .*\n|\n)+)", source, re.MULTILINE)
        names = re.findall(r'^    [A-Z0-9_]+ = "([^"]+)"', body.group(1), re.MULTILINE) if body else []
        listed = root / "llms" / "openai_like" / "providers.json"
        more = json.loads(listed.read_text(encoding="utf-8")) if listed.exists() else {}
    except (OSError, ValueError):
        return frozenset()
    return frozenset([*names, *more])
