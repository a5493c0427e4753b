"""The typed settings of a project: ``agent.yml``, ``integrations.yml`` and the environment.

Every option carries its unit in its name and its default beside it. Files are read and reported
on by `voice_agent.config_files`; this module only says what may stand in them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Options(BaseModel):
    """Base of all options: frozen, unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid")


Milliseconds = Annotated[int, Field(ge=0, le=600_000)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]


class TurnTaking(Options):
    """When the caller is listened to, answered, and yielded to. All times are audio time."""

    pre_roll_ms: Milliseconds = 300
    """Audio before the detected onset that goes to the recogniser."""
    pause_ms: Milliseconds = 160
    """Silence after which the recogniser starts on what is there."""
    min_endpoint_ms: Milliseconds = 300
    """Silence that ends a complete utterance."""
    max_endpoint_ms: Milliseconds = 1200
    """Silence that ends any utterance."""
    max_utterance_s: Seconds = 60
    """Hard cap on one utterance."""
    min_utterance_voice_ms: Milliseconds = 200
    """Voice below this makes no turn."""
    late_final_ms: Milliseconds = 700
    """Speech this soon after the commit, before any reply was heard, reopens the turn."""
    stt_timeout_s: Seconds = 5
    """A recogniser slower than this costs the caller a "could not hear you"."""
    barge_in: bool = True
    """Whether the caller may interrupt the agent on this channel."""
    stop_words_always: bool = False
    """Whether stop words interrupt where ``barge_in`` is off."""
    barge_in_onset_ms: Milliseconds = 80
    """Confirmed voice that pauses playout."""
    min_words: int = Field(2, ge=1, le=20)
    """Words that turn a pause into a barge-in."""
    min_voice_ms: Milliseconds = 500
    """Voice that turns a pause into a barge-in without words."""
    false_interruption_ms: Milliseconds = 400
    """Silence after which a pause without words resumes."""
    greeting_guard_s: Seconds = 3
    """Start of the agent's first speech during which only words interrupt."""
    lead_ms: Milliseconds = 120
    """How far audio may run ahead of the wall clock where the wire buffers."""
    fade_ms: Milliseconds = 20
    """Length of the fade when speech is cut."""
    grace_ms: Milliseconds = 500
    """How long cancelled work is awaited before it is abandoned."""
    silence_timeout_s: Seconds = 8
    """Silence of an idle call before ``/silence`` is sent."""
    media_timeout_s: Seconds = 15
    """No frames at all for this long ends the call."""
    close_timeout_s: Seconds = 5
    """Limit on everything that follows a hang-up."""
    drain_timeout_s: Seconds = 5
    """Limit on waiting for the far end to play what was sent."""
    interruptible_goodbye: bool = True
    """Whether speech during the goodbye keeps the call."""
    max_call_s: Seconds = 3600
    """Longest call; a warning line is said before it."""
    resume_window_s: Seconds = 30
    """How long after a dropped connection the conversation may be resumed without a new greeting."""


class LlmOptions(Options):
    """The language model. ``provider: embedded`` needs no key and no network."""

    provider: str = "embedded"
    """``embedded``, or a litellm provider name such as ``openai``."""
    model: str = "minilm"
    """Model name at the provider."""
    api_key_env: str | None = None
    """Environment variable that holds the key."""
    base_url: str | None = None
    """Address of an OpenAI-compatible server."""
    temperature: float | None = Field(None, ge=0, le=2)
    """How freely the model words things; the provider's own default if not given."""
    max_tokens: int = Field(400, ge=1, le=32_000)
    """Longest answer to one model call."""
    first_token_timeout_s: Seconds = 8
    """Silence after which a model call that has said nothing yet is given up."""
    between_tokens_timeout_s: Seconds = 5
    """Silence after which a model call that has begun to answer is given up."""
    retries: int = Field(1, ge=0, le=5)
    """Retries per model, only before the first token."""
    fallbacks: tuple[LlmOptions, ...] = ()
    """Models tried in order when this one fails before its first token."""


class SttOptions(Options):
    """Speech to text."""

    name: str = "whisper"
    """The engine: ``whisper``."""
    model: str = "tiny.en"
    """``tiny.en`` (fast, bundled), ``base`` (accurate, bundled), a hub name, or a path."""
    language: str | None = "en"
    """Language of the callers; null lets the model decide."""


class TtsOptions(Options):
    """Text to speech."""

    name: str = "piper"
    """The engine: ``piper``."""
    voice: str = "en_US-joe-medium"
    """A bundled voice or the path of a Piper ``.onnx`` file."""


class VadOptions(Options):
    """Voice detection."""

    name: Literal["silero", "webrtc"] = "silero"
    """``silero`` confirms what WebRTC finds; ``webrtc`` alone is cheaper and fooled by music and hum."""


class PoolOptions(Options):
    """The worker pool that all calls share."""

    workers: int = Field(0, ge=0, le=64)
    """Jobs run at once; 0 chooses from the number of cores."""
    threads_per_job: int = Field(0, ge=0, le=64)
    """Threads of one engine job; 0 chooses so that workers x threads does not exceed the cores."""
    max_queue: int = Field(64, ge=1, le=10_000)
    """Jobs waiting beyond this are refused."""


class CacheOptions(Options):
    """Speech that was made once and is said again."""

    memory_mb: int = Field(64, ge=1, le=4096)
    """Speech kept in memory, in MiB: about 30 s each."""
    disk_mb: int = Field(256, ge=0, le=65_536)
    """Speech kept on disk across restarts, in MiB; 0 keeps none."""
    directory: Path | None = None
    """Where on disk; ``voice-agent/responses`` in the user's cache directory by default."""


class SpeechOptions(Options):
    """The speech engines and what they share."""

    stt: SttOptions = SttOptions()
    """Speech to text."""
    tts: TtsOptions = TtsOptions()
    """Text to speech."""
    vad: VadOptions = VadOptions()
    """Voice detection."""
    pool: PoolOptions = PoolOptions()
    """The workers that run them."""
    cache: CacheOptions = CacheOptions()
    """Canned speech, kept."""


class ChannelOptions(Options):
    """A channel on which the caller is heard."""

    enabled: bool = True
    """Whether callers may come in by it."""
    turn_taking: TurnTaking = TurnTaking()
    """When the caller is listened to, answered, and yielded to."""


class TextChannelOptions(Options):
    """A channel on which the caller writes: there are no turns to take."""

    enabled: bool = True
    """Whether callers may come in by it."""


class Channels(Options):
    """The ways in."""

    websocket: ChannelOptions = ChannelOptions()
    """Calls on ``/ws``."""
    text: TextChannelOptions = TextChannelOptions()
    """Messages by HTTP."""


class ServerOptions(Options):
    """Where the service listens, and to whom."""

    host: str = "127.0.0.1"
    """Address to listen on; beyond loopback a key is needed."""
    port: int = Field(8080, ge=0, le=65_535)
    """Port to listen on; 0 takes any that is free."""
    api_key_env: str = "VOICE_AGENT_API_KEY"
    """Environment variable with the key that callers must present when not on loopback."""
    allowed_origins: tuple[str, ...] = ()
    """Web pages of other hosts that may connect, such as ``https://www.example.com``."""
    max_calls: int = Field(100, ge=1, le=10_000)
    """Calls beyond this are refused with a clear answer."""
    drain_timeout_s: Seconds = 10
    """How long calls, which are told to end, may take for it when the service is asked to stop."""


class RecordingOptions(Options):
    """Recording of calls: stereo WAV, caller left, agent as heard right."""

    enabled: bool = False
    """Whether calls are recorded. Callers may have to be told."""
    directory: Path = Path("recordings")
    """Where, from the project's directory on; one file per call, named after its id."""


class StoreOptions(Options):
    """Where conversations are kept, and for how long."""

    path: str | None = Field(None, min_length=1)
    """A database file, from the project's directory on, or ``:memory:`` to keep nothing beyond the process.
    Defaults to ``voice-agent/<agent id>.sqlite3`` in the user's data directory."""
    retention_days: float = Field(30, ge=0, le=36_500)
    """A conversation untouched for this long is deleted; 0 keeps it."""
    max_conversations: int = Field(100_000, ge=1, le=100_000_000)
    """Beyond this the conversation untouched for longest is deleted."""
    max_events: int = Field(20_000, ge=100, le=1_000_000)
    """Records kept per conversation, the newest."""


class Integrations(Options):
    """All of ``integrations.yml``."""

    llm: LlmOptions = LlmOptions()
    """The language model."""
    speech: SpeechOptions = SpeechOptions()
    """Speech engines, their workers, canned speech."""
    channels: Channels = Channels()
    """The ways in."""
    server: ServerOptions = ServerOptions()
    """Where the service listens, and to whom."""
    recording: RecordingOptions = RecordingOptions()
    """Recording of calls."""
    store: StoreOptions = StoreOptions()
    """Where conversations are kept, and for how long."""


class AgentIdentity(Options):
    """The ``agent:`` section of ``agent.yml``."""

    id: str = ""
    """Stable name of the agent, under which its conversations are kept; made at its first start if missing."""
    name: str = "Agent"
    """What it calls itself."""
    language: str = "en"
    """Language it speaks unless the caller speaks another; also that of its voice's texts."""
    description: str = ""
    """What the agent is for; part of the model's prompt."""
    persona: str
    """Who the agent is and how it speaks, in a sentence or a few."""


class SessionOptions(Options):
    """The ``session_config:`` section of ``agent.yml``."""

    session_expiration_time: float = Field(60, ge=0, le=525_600)
    """Minutes without a turn after which the next one starts a new session; 0 never expires."""
    start_session_after_expiry: bool = True
    """Whether an expired session is followed by ``default_session_start``."""


class StyleOptions(Options):
    """The ``orchestrator:`` section of ``agent.yml``: how replies are worded, per kind of channel."""

    voice_rules: tuple[str, ...] | None = None
    """Replaces the built-in rules for speech."""
    text_rules: tuple[str, ...] | None = None
    """Replaces the built-in rules for text."""


Tokens = Annotated[int, Field(ge=50, le=200_000)]


class PromptOptions(Options):
    """The ``prompts:`` section of ``agent.yml``. A section of the prompt beyond its tokens is cut, and says so."""

    ack_enabled: bool | None = None
    """Whether the model says a few words before a tool that takes time; by default in speech and not in text."""
    routing_no_active_skill: str | None = None
    """Replaces the rule for small talk."""
    rules_tokens: Tokens = 2000
    """Rules, and style, each."""
    skills_tokens: Tokens = 3000
    """The list of skills."""
    instructions_tokens: Tokens = 4000
    """The active skill's text."""
    memory_tokens: Tokens = 1500
    """Known values, each of the three groups of them."""
    history_tokens: Tokens = 6000
    """Turns before this one; the oldest go first."""
    turn_tokens: Tokens = 8000
    """Tool calls and results of this turn; the oldest results are shortened first."""


class ConversationOptions(Options):
    """The ``conversation:`` section of ``agent.yml``."""

    before_end: tuple[str, ...] = ()
    """Skills that run before the agent hangs up, such as ``default_customer_satisfaction``."""


class AgentFile(Options):
    """All of ``agent.yml`` that is acted on."""

    agent: AgentIdentity
    """Who the agent is."""
    rules: tuple[str, ...] = ()
    """What it must always or never do; part of the model's prompt."""
    references_instructions: str = ""
    """How the model should use the agent-wide knowledge (``references.instructions``)."""
    session_config: SessionOptions = SessionOptions()
    """When a conversation begins anew."""
    orchestrator: StyleOptions = StyleOptions()
    """How replies are worded."""
    prompts: PromptOptions = PromptOptions()
    """What the model is given, and how much of it."""
    conversation: ConversationOptions = ConversationOptions()
    """What happens around the talk itself."""
    tool_timeout: Seconds = 10
    """Seconds a tool may take."""
    cancellation_grace: Seconds = 1.0
    """Seconds a cancelled tool is awaited before it is abandoned."""
    max_model_iterations: int = Field(10, ge=1, le=100)
    """Model calls within one turn."""
