"""Puts callers through: admission, the conversation behind the call, and the call itself."""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from voice_agent.call.call import Call
from voice_agent.call.clock import MediaClock
from voice_agent.call.recordings import Recordings
from voice_agent.call.registry import Admission, CallRegistry, Refused
from voice_agent.call.vocabulary import ENGLISH, Vocabulary, vocabulary_for
from voice_agent.call.wire import EventMessage, Wire
from voice_agent.channels.desk import CallRefused, CallRequest, Invitation, InvitationRefused
from voice_agent.channels.tokens import CallTokens, TokenRefused, TooManyTokens
from voice_agent.config import ChannelOptions, TurnTaking
from voice_agent.config_files import ProjectConfig
from voice_agent.dialogue.seeds import ENVELOPE_KEYS, BadMetadata
from voice_agent.service.engines import Engines
from voice_agent.service.hold_audio import HoldAudio
from voice_agent.service.texts import TextConversations
from voice_agent.service.versions import AgentVersions
from voice_agent.telemetry.logging import bind

log = logging.getLogger(__name__)

TAKE_OVER_S = 6.0
"""How long a caller who takes over waits for the end of the other call; a little longer than `close_timeout_s`."""
VACATE_S = 1.0
"""How long a caller who may not simply take over waits for the call that carries the same conversation to end or fall
silent."""


@dataclass(frozen=True)
class Calls:
    """Implements `voice_agent.channels.desk.CallDesk`."""

    config: ProjectConfig
    agent: AgentVersions
    engines: Engines
    registry: CallRegistry
    clock: MediaClock
    texts: TextConversations
    tokens: CallTokens
    recordings: Recordings
    hold_audio: HoldAudio

    def invite(self, conversation_id: str, metadata: Mapping[str, Any], expires_in_s: float) -> Invitation:
        try:
            usable = self.agent.current.read_metadata(metadata)
        except BadMetadata as fault:
            raise InvitationRefused(str(fault)) from None
        try:
            token, grant = self.tokens.issue(conversation_id, usable, expires_in_s)
        except TooManyTokens:
            raise CallRefused("too_many_tokens", "Too many tokens are out. Ask again in a minute.") from None
        return Invitation(token, grant, expires_in_s)

    def _vocabulary(self, options: TurnTaking) -> Vocabulary:
        own = (options.backchannels, options.stop_words)
        return vocabulary_for(self.config.agent.agent.language, *own) or vocabulary_for("en", *own) or ENGLISH

    def reserve(self, conversation_id: str, channel: str) -> Admission:
        self._options(channel)
        return self._admit(conversation_id, reserve=True)

    def note(self, conversation_id: str, kind: str, **data: Any) -> None:
        self.registry.note(conversation_id, kind, **data)

    def _options(self, channel: str) -> ChannelOptions:
        options: ChannelOptions = getattr(self.config.integrations.channels, channel)
        if not options.enabled:
            raise CallRefused("channel_off", "This channel is switched off.", retry=False)
        return options

    def _admit(self, conversation_id: str, *, reserve: bool = False) -> Admission:
        try:
            return self.registry.admit(conversation_id, reserve=reserve)
        except Refused as refusal:
            raise CallRefused(refusal.code, refusal.message) from None

    async def take(self, request: CallRequest, wire: Wire) -> None:
        options = self._options(request.channel)
        if isinstance(request.place, Admission):
            admission = request.place
            if admission.released.is_set() or admission.taken:
                raise CallRefused("not_connected", "The call is not wanted any more.", retry=False)
        else:
            await self._vacate(request)
            admission = self._admit(request.conversation_id)
        admission.taken = True
        with admission:
            try:
                # Only now is it sure that no other connection with the same token came first.
                call_id = request.grant.begin() if request.grant else uuid.uuid4().hex
            except TokenRefused as refusal:
                admission.refused = refusal.code
                raise CallRefused(refusal.code, refusal.message, retry=False) from None
            with bind(call=call_id, conversation=request.conversation_id):
                await self._admitted(call_id, request, wire, admission, options)

    async def _vacate(self, request: CallRequest) -> None:
        """See to it that the conversation is on no other call, if its caller may do that."""
        if not self.config.integrations.server.reconnect_takes_over:
            await self.registry.vacated(request.conversation_id, VACATE_S)
            return
        # A token lies in a web page: whoever has got hold of one must not take a call from under its caller.
        quiet_s = VACATE_S if request.grant else 0.0
        await self.registry.take_over(request.conversation_id, TAKE_OVER_S, quiet_s=quiet_s)

    async def _admitted(
        self, call_id: str, request: CallRequest, wire: Wire, admission: Admission, options: ChannelOptions
    ) -> None:
        try:
            if request.connect is not None and not await request.connect(call_id):
                raise CallRefused("not_connected", "The media did not come through.")
            await self.texts.release(request.conversation_id)
            await self._run(call_id, request, wire, admission, options)
        except CallRefused as refusal:
            admission.refused = refusal.code
            raise
        finally:
            if request.grant is None:
                pass
            elif admission.call is None:
                # Whose media did not come through, or who was turned away after all, has had no call.
                request.grant.give_back()
            else:
                window_s = options.turn_taking.resume_window_s
                request.grant.end(resumable_s=window_s if admission.resumable else 0.0)

    def _known_of(self, request: CallRequest) -> dict[str, Any] | None:
        """What is known of the caller beforehand: what the application said goes before what the wire tells."""
        known: dict[str, Any] = {}
        for name, value in request.facts.items():
            if name in ENVELOPE_KEYS:
                continue
            with contextlib.suppress(BadMetadata):
                known |= self.agent.current.read_metadata({name: value})
        if request.grant:
            known |= request.grant.metadata
        return known or None

    async def _run(
        self, call_id: str, request: CallRequest, wire: Wire, admission: Admission, options: ChannelOptions
    ) -> None:
        recording = self.config.integrations.recording
        try:
            conversation = self.agent.open(
                request.conversation_id,
                channel=request.channel,
                metadata=self._known_of(request),
            )
            call = Call(
                call_id=call_id,
                conversation=conversation,
                wire=wire,
                voice=self.engines.voice,
                recognizer=self.engines.recognizer,
                detector=self.engines.detectors(),
                options=options.turn_taking,
                vocabulary=self._vocabulary(options.turn_taking),
                clock=self.clock,
                recorder=self.recordings.recorder(request.conversation_id, call_id, recording.format)
                if recording.enabled
                else None,
                hold_audio=self.hold_audio,
            )
        except Exception:
            # Nothing has been said on the wire yet: the caller is turned away instead of left in silence.
            log.exception("the call could not be set up")
            raise CallRefused("internal", "Something went wrong on our side.") from None
        forget = conversation.on_event(lambda event: wire.send(EventMessage(event))) if request.events else None
        admission.attach(call)
        log.info("call begins", extra={"channel": request.channel})
        try:
            outcome = await call.run()
        finally:
            if forget:
                forget()
        admission.ended(outcome)
        log.info(
            "call ended",
            extra={"outcome": outcome.outcome, "reason": outcome.reason, "seconds": round(outcome.seconds, 1)},
        )
