"""Telephone carriers that stream a call's audio over a WebSocket: Twilio, Telnyx, Plivo, Vonage."""
