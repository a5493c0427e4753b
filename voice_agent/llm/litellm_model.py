"""Remote models through litellm, and any OpenAI-compatible server.

litellm takes seconds to import and by default looks for prices, presets and ``.env`` files; it is
imported off the loop, once, with all of that switched off. For the ``openai`` provider the adapter
brings its own HTTP client, so that connections belong to the model object, not to a cache of the
process, and unreadable events do not end a stream.

A response is opened, iterated and closed by one task per stream, which is cancelled once (see
`voice_agent.llm.closing`) when the reader leaves or is cancelled. Closing the response closes, where
it was not read to its end, the connection under it: so the provider stops generating.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
from collections.abc import AsyncGenerator
from typing import Any

from voice_agent.config import LlmOptions
from voice_agent.diagnostics import RemediableError
from voice_agent.llm.closing import close_within, end_within
from voice_agent.llm.protocol import Finished, ModelError, ModelEvent, ModelRequest
from voice_agent.llm.unreachable import unreachable
from voice_agent.llm.wire_format import ChunkReader, request_arguments

log = logging.getLogger(__name__)

CLOSE_TIMEOUT_S = 0.2
CONNECT_TIMEOUT_S = 5.0
MAX_CONNECTIONS = 200
QUEUED_EVENTS = 64
_REFUSING_STATUS = (400, 404, 422, 500, 501)
"""500 too: llama.cpp answers so when it was started without templates for tools."""
NO_KEY = "no-key-needed"
_CONFIGURATION_ERRORS = ("AuthenticationError", "NotFoundError", "BadRequestError", "PermissionDeniedError")


def import_litellm() -> Any:
    """Import litellm with its network look-ups, ``.env`` loading and chatter switched off. Blocks for seconds.

    Raises:
        RemediableError: The package is not installed.
    """
    for name, value in (
        ("LITELLM_LOCAL_MODEL_COST_MAP", "True"),
        ("LITELLM_OFFLINE_MODE", "true"),
        ("LITELLM_MODE", "PRODUCTION"),
    ):
        os.environ.setdefault(name, value)
    try:
        litellm: Any = importlib.import_module("litellm")
    except ImportError as error:
        raise RemediableError(
            f"The litellm package cannot be imported ({error}).", "Install it with: pip install 'voice-agent[litellm]'."
        ) from error
    litellm.telemetry = False
    litellm.suppress_debug_info = True
    litellm.turn_off_message_logging = True
    litellm.disable_streaming_logging = True
    litellm.drop_params = True
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.ERROR)
    return litellm


class LiteLlmModel:
    """Implements `LanguageModel` over ``litellm.acompletion``.

    It knows neither timeouts to tokens nor retries: `DeadlinedModel` and `FallbackModel` add those.

    Args:
        options: ``provider`` and ``model`` become the litellm name ``provider/model``.
        api_key: The key itself, or None where the provider needs none.
    """

    def __init__(self, options: LlmOptions, api_key: str | None) -> None:
        self._options = options
        self._api_key = api_key
        self._litellm: Any = None
        self._client: Any = None
        self._loading = asyncio.Lock()

    @property
    def name(self) -> str:
        return f"{self._options.provider}/{self._options.model}"

    async def warm_up(self) -> None:
        """Import litellm in a thread.

        Raises:
            RemediableError: litellm is not installed.
        """
        async with self._loading:
            if self._litellm is None:
                litellm = await asyncio.to_thread(import_litellm)
                if self._options.provider == "openai":
                    self._client = await asyncio.to_thread(self._make_client)
                self._litellm = litellm

    async def aclose(self) -> None:
        client, self._client, self._litellm = self._client, None, None
        if client is not None:
            await close_within(client.close(), CLOSE_TIMEOUT_S, "llm_client_close")

    async def takes_tools(self) -> bool | None:
        """Return False if litellm knows that the model has no tool calls; it would leave the tools out silently."""
        if self._litellm is None:
            await self.warm_up()
        try:
            known = self._litellm.get_supported_openai_params(
                model=self._options.model, custom_llm_provider=self._options.provider
            )
        except Exception:  # noqa: BLE001 - a look-up must not stand in the way of a call
            return None
        return None if known is None or "tools" in known else False

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """See `LanguageModel.stream`."""
        if self._litellm is None:
            await self.warm_up()
        queue: asyncio.Queue[ModelEvent | ModelError] = asyncio.Queue(QUEUED_EVENTS)
        upstream = asyncio.get_running_loop().create_task(self._read(request, queue), name="llm_stream")
        try:
            while True:
                event = await queue.get()
                if isinstance(event, ModelError):
                    raise event
                yield event
                if isinstance(event, Finished):
                    return
        finally:
            await end_within(upstream, CLOSE_TIMEOUT_S, "llm_stream")

    async def _read(self, request: ModelRequest, queue: asyncio.Queue[ModelEvent | ModelError]) -> None:
        """Open, iterate and close one upstream response, all in the task that runs this."""
        reader = ChunkReader()
        chunks: Any = None
        outcome: ModelEvent | ModelError
        try:
            chunks = await self._litellm.acompletion(**self._arguments(request))
            # Leaving at the finish reason, before litellm sees the end, keeps it from starting
            # logging tasks that would outlive the turn.
            while reader.finish_reason is None:
                chunk = await anext(chunks, None)
                if chunk is None:
                    break
                for event in reader.read(chunk):
                    await queue.put(event)
            outcome = Finished(reader.finish_reason or "stop", reader.prompt_tokens, reader.completion_tokens)
        except Exception as error:  # noqa: BLE001 - whatever a provider raises is one kind of event to a turn
            outcome = self._model_error(error)
        finally:
            if chunks is not None:
                await _close(chunks)
        await queue.put(outcome)

    def _model_error(self, error: Exception) -> ModelError:
        kind = "configuration" if type(error).__name__ in _CONFIGURATION_ERRORS else "provider"
        said = unreachable(error, self._options.base_url) or _answered(error)
        failure = ModelError(f"{self.name}: {said}", kind, refuses_tools=_refuses_tools(error))
        failure.__cause__ = error
        return failure

    def _arguments(self, request: ModelRequest) -> dict[str, Any]:
        options = self._options
        arguments = request_arguments(request)
        arguments |= {
            "model": self.name,
            "stream": True,
            "max_tokens": request.max_tokens or options.max_tokens,
            "max_retries": 0,
            "num_retries": 0,
            # A net under the deadlines of tokens, for the silences those do not see.
            "timeout": options.first_token_timeout_s + options.between_tokens_timeout_s + CONNECT_TIMEOUT_S,
            "api_key": self._api_key or NO_KEY if self._has_own_key else None,
            "api_base": options.base_url,
        }
        temperature = options.temperature if request.temperature is None else request.temperature
        if temperature is not None:
            arguments["temperature"] = temperature
        if self._client is not None:
            arguments["client"] = self._client
        return {name: value for name, value in arguments.items() if value is not None}

    @property
    def _has_own_key(self) -> bool:
        """Whether the key is ours to give; otherwise litellm reads the provider's own variables."""
        return self._api_key is not None or self._options.base_url is not None

    def _make_client(self) -> Any:
        httpx = importlib.import_module("httpx")
        openai = importlib.import_module("openai")
        guard = importlib.import_module("voice_agent.llm.sse_guard")
        limits = httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=20)
        timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT_S)
        transport = guard.GuardedTransport(httpx.AsyncHTTPTransport(limits=limits))
        return openai.AsyncOpenAI(
            api_key=self._api_key or NO_KEY,
            base_url=self._options.base_url,
            max_retries=0,
            http_client=httpx.AsyncClient(transport=transport, timeout=timeout),
        )


def _refuses_tools(error: Exception) -> bool:
    """Providers have no common error for this: a status that is about the request, and a text that names tools."""
    status = getattr(error, "status_code", None)
    return status in _REFUSING_STATUS and "tool" in str(error).casefold()


def _answered(error: Exception) -> str:
    # The provider's text may quote the prompt: its class and status are enough for the operator.
    status = getattr(error, "status_code", None)
    return f"{type(error).__name__}{f' (status {status})' if status else ''} from the provider"


async def _close(chunks: Any) -> None:
    """Close litellm's stream and wait for the failure report it may have started."""
    await chunks.aclose()
    settle = getattr(chunks, "wait_for_failure_logging", None)
    if settle is not None:
        await settle(CLOSE_TIMEOUT_S)
