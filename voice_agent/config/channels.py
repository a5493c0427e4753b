"""The ways in."""

from __future__ import annotations

from voice_agent.config.carriers import PlivoOptions, TelnyxOptions, TwilioOptions, VonageOptions
from voice_agent.config.channel import ChannelOptions, TextChannelOptions
from voice_agent.config.microphone import MicrophoneOptions
from voice_agent.config.options import Options
from voice_agent.config.outbound import OutboundOptions
from voice_agent.config.pbx import AsteriskOptions, FreeSwitchOptions, GenesysOptions, JambonzOptions
from voice_agent.config.sip import SipOptions
from voice_agent.config.telephony import AudioSocketOptions
from voice_agent.config.webrtc import WebRtcOptions


class Channels(Options):
    """The ways in."""

    websocket: ChannelOptions = ChannelOptions()
    """Calls on ``/ws``."""
    webrtc: WebRtcOptions = WebRtcOptions()
    """Calls from browsers, on ``/offer``."""
    audiosocket: AudioSocketOptions = AudioSocketOptions()
    """Calls from Asterisk's AudioSocket."""
    asterisk: AsteriskOptions = AsteriskOptions()
    """Calls from Asterisk's WebSocket channel driver."""
    freeswitch: FreeSwitchOptions = FreeSwitchOptions()
    """Calls from FreeSWITCH."""
    jambonz: JambonzOptions = JambonzOptions()
    """Calls from jambonz."""
    genesys: GenesysOptions = GenesysOptions()
    """Calls from Genesys Cloud."""
    sip: SipOptions = SipOptions()
    """Calls from telephones, exchanges and trunks."""
    microphone: MicrophoneOptions = MicrophoneOptions()
    """Calls by this machine's own microphone and speaker."""
    twilio: TwilioOptions = TwilioOptions()
    """Calls from Twilio."""
    telnyx: TelnyxOptions = TelnyxOptions()
    """Calls from Telnyx."""
    plivo: PlivoOptions = PlivoOptions()
    """Calls from Plivo."""
    vonage: VonageOptions = VonageOptions()
    """Calls from Vonage."""
    outbound: OutboundOptions = OutboundOptions()
    """Calls that the service places."""
    text: TextChannelOptions = TextChannelOptions()
    """Messages by HTTP."""
