"""Prometheus metrics of the service. Nothing here is touched once per audio frame."""

from __future__ import annotations

from prometheus_client import Counter, Gauge, Histogram

_LATENCY_BUCKETS = (0.01, 0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)

ABANDONED_TASKS = Counter(
    "voice_agent_abandoned_tasks_total", "Tasks that ignored cancellation past their grace window", ["kind"]
)

CALLS_ACTIVE = Gauge("voice_agent_calls_active", "Calls now on the line")
CALLS = Counter("voice_agent_calls_total", "Calls ended, by channel and outcome", ["channel", "outcome"])
CALLS_REFUSED = Counter("voice_agent_calls_refused_total", "Calls not admitted", ["reason"])
CALLS_PLACED = Counter("voice_agent_calls_placed_total", "Calls that we placed", ["channel", "outcome"])
CONNECTIONS_REFUSED = Counter(
    "voice_agent_connections_refused_total", "Connections of telephone wires turned away", ["channel", "code"]
)

POOL_DEPTH = Gauge("voice_agent_speech_pool_depth", "Speech jobs waiting for a worker")
POOL_WAIT = Histogram(
    "voice_agent_speech_pool_wait_seconds", "Time a speech job waited", ["job"], buckets=_LATENCY_BUCKETS
)
POOL_RUN = Histogram("voice_agent_speech_pool_run_seconds", "Time a speech job ran", ["job"], buckets=_LATENCY_BUCKETS)
POOL_REFUSED = Counter("voice_agent_speech_pool_refused_total", "Speech jobs refused by a full queue", ["job"])

LOOP_LAG = Gauge("voice_agent_loop_lag_seconds", "Worst lateness of the 20 ms media clock in the last second")
LOOP_STALLS = Counter("voice_agent_loop_stalls_total", "Times the event loop was held up for tenths of a second")
FIRST_AUDIO = Histogram(
    "voice_agent_first_audio_seconds", "End of caller speech to first agent audio", buckets=_LATENCY_BUCKETS
)
FILLERS = Counter("voice_agent_fillers_total", "Turns so slow that a filler was said")
TRANSFERS = Counter("voice_agent_transfers_total", "Transfers to somebody else, by what came of them", ["result"])
DIGITS_PRESSED = Counter(
    "voice_agent_digits_pressed_total", "Times that the agent pressed keys, by what came of it", ["result"]
)
SPECULATIONS = Counter(
    "voice_agent_speculations_total", "Model calls begun before the caller had certainly finished", ["outcome"]
)
BARGE_INS = Counter("voice_agent_barge_ins_total", "Barge-ins by outcome", ["outcome"])
ILLEGAL_TRANSITIONS = Counter(
    "voice_agent_illegal_transitions_total",
    "Floor events without a meaning in their state: ignored",
    ["state", "event"],
)
ENGINE_FAILURES = Counter("voice_agent_engine_failures_total", "Speech and model engine failures", ["engine"])
AUDIO_DROPPED = Counter(
    "voice_agent_audio_dropped_seconds_total", "Caller audio dropped by bounded queues", ["channel"]
)

STORE_BACKLOG = Gauge("voice_agent_store_backlog_records", "Records of conversations not on the disk yet")
STORE_FAILURES = Counter("voice_agent_store_failures_total", "Commits of the store that failed and are tried again")
STORE_DROPPED = Counter("voice_agent_store_dropped_records_total", "Records of conversations that were given up")
STORE_COMMIT = Histogram(
    "voice_agent_store_commit_seconds", "Time of a commit on the writer's thread", buckets=_LATENCY_BUCKETS
)

RECORDINGS_FAILED = Counter("voice_agent_recordings_failed_total", "Recordings that ended before their call did")

RECALL_SECONDS = Histogram(
    "voice_agent_recall_seconds",
    "Time to recall for a turn, the sentence vector included",
    buckets=(0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0),
)
RECALL_LATE = Counter("voice_agent_recall_late_total", "Turns that went on without what would have been recalled")
RECALL_FAILURES = Counter("voice_agent_recall_failures_total", "Questions that recall could not answer")
RECALL_EPISODES_DROPPED = Counter("voice_agent_recall_dropped_episodes_total", "Exchanges that were not kept")
MCP_CONNECTED = Gauge("voice_agent_mcp_connected", "Whether a server of tools is connected", ["server"])
MCP_LOST = Counter(
    "voice_agent_mcp_connections_lost_total", "Connections to servers of tools that were lost", ["server"]
)
