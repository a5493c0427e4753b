"""Telephone exchanges that bring a call's audio over a WebSocket: Asterisk, FreeSWITCH, jambonz, Genesys."""
