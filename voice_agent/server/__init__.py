"""The HTTP face of the service and the process around it."""

from voice_agent.server.application import Application, Service
from voice_agent.server.listening import listen
from voice_agent.server.serving import log_unhandled, serve

__all__ = ["Application", "Service", "listen", "log_unhandled", "serve"]
