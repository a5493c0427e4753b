"""Hooks under the older name of the outgoing one."""

from lib.privacy import without_member_numbers
from rasa.calm_v2.hooks import modify_outgoing_text


@modify_outgoing_text
async def hide_member_numbers(payload, context):
    return payload.model_copy(update={"text": without_member_numbers(payload.text)})
