"""Counts turns."""

from rasa.mantle.hooks import on_turn_finished

finished = []


@on_turn_finished
async def count(payload):
    finished.append(payload)
