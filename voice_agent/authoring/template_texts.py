"""The texts of new projects and skills. ``<<NAME>>`` is filled in by `templates`.

Lines for editors (``yaml-language-server``) are left out where a project has no schemas.
"""

from __future__ import annotations

from collections.abc import Mapping

PROJECT: Mapping[str, str] = {
    "agent.yml": """\
# yaml-language-server: $schema=<<SCHEMAS>>/agent.json
agent:
  id: <<ID>>
  name: <<AGENT>>
  language: en
  description: Answers callers and takes messages.
  persona: >
    You are the friendly, unhurried voice of <<AGENT>>. You answer questions from the reference texts and take messages.

rules:
  - Never promise when somebody will call back.
""",
    "integrations.yml": """\
# yaml-language-server: $schema=<<SCHEMAS>>/integrations.json
# The embedded model needs no key and no network. For another one name its provider, such as openai,
# its model, and in api_key_env the environment variable that holds the key.
llm:
  provider: embedded

channels:
  websocket:
    enabled: true
  text:
    enabled: true
""",
    ".gitignore": """\
# Recordings hold what callers said.
recordings/
__pycache__/
""",
    "memory.yml": """\
# yaml-language-server: $schema=<<SCHEMAS>>/memory.json
# What holds for the whole session, whichever skill is at work. Tools write it, the model never does.
message_number:
  type: text
  description: Number under which the caller's last message was taken down.
  mutable: true
""",
    "responses.yml": """\
# yaml-language-server: $schema=<<SCHEMAS>>/responses.json
responses:
  utter_greet:
    - text: "Hello, this is <<AGENT>>. How can I help?"
""",
    "references/opening_hours.md": """\
# Opening hours

Our opening hours are from nine in the morning to five in the afternoon, Monday to Friday. We are closed at weekends and
on public holidays.
""",
    "skills/default_session_start/skill.md": """\
---
name: Session start
description: Greets the caller.
routing:
  engine_managed: true
---
:::ordered_block id=main
steps:
  - id: greet
    action: utter_greet
:::
""",
    "skills/leave_message/skill.md": """\
---
name: Message
description: The caller wants to leave a message, be called back, or have something passed on.
examples:
  - I would like to leave a message
  - Can somebody call me back?
  - Please tell them that I called
---
:::ordered_block id=main
steps:
  - id: ask_message
    collect: message
    utterance: utter_ask_message
  - id: write_down
    execute_tool: write_down_message
  - id: tell_number
    action: utter_message_taken
:::
""",
    "skills/leave_message/memory.yml": """\
# yaml-language-server: $schema=<<SCHEMAS>>/skill-memory.json
schema:
  public:
    message:
      type: text
      description: What the caller wants to be passed on, in their own words.
""",
    "skills/leave_message/responses.yml": """\
# yaml-language-server: $schema=<<SCHEMAS>>/responses.json
responses:
  utter_ask_message:
    - text: "What may I pass on?"
  utter_message_taken:
    - text: "Thank you. I have taken that down as message {message_number}."
""",
    "skills/leave_message/tools.py": '''\
"""Tools of this skill. The model sees name, description and arguments of each."""

import hashlib

from voice_agent.dialogue import ToolContext, ToolResult, tool


@tool(description="Take down a message of the caller.")
async def write_down_message(message: str, context: ToolContext = None) -> ToolResult:
    # Replace this with a call to your own system. The key is the same when a call is repeated,
    # so that a message that was cut off on its way is not taken down twice.
    number = str(int(hashlib.sha256(context.idempotency_key.encode()).hexdigest(), 16) % 9000 + 1000)
    context.memory.set("message_number", " ".join(number))
    return ToolResult(llm_response={"ok": True, "number": number})
''',
    "skills/say_goodbye/skill.md": """\
---
name: Goodbye
description: The caller is done, needs nothing else, or says goodbye.
examples:
  - Goodbye
  - No, that is all, thank you
---
:::ordered_block id=main
steps:
  - id: say_goodbye
    action: utter_hangup_goodbye
  - id: end_call
    execute_tool: hangup
:::
""",
    "tests/first_call.yml": """\
# yaml-language-server: $schema=<<SCHEMAS>>/conversations.json
conversations:
  - name: A caller leaves a message
    steps:
      - expect:
          said: {response: utter_greet}
      - say: I would like to leave a message
        model:
          - start_skill: {skill: leave_message}
        expect:
          said: {response: utter_ask_message}
      - say: Tell them that the parcel has arrived
        model:
          - set_fields: {message: The parcel has arrived}
        expect:
          ran: {write_down_message: {message: The parcel has arrived}}
          said: I have taken that down as message
          memory: {project.message_number: {set: true}}
          skill: {completed: leave_message}

  - name: The same with the project's own model
    model: live
    steps:
      - say: I would like to leave a message
        expect:
          skill: leave_message
      - say: The parcel has arrived
        expect:
          ran: write_down_message
      - say: No, that is all, thank you
        expect:
          hung_up: true
""",
}

SKILL: Mapping[str, str] = {
    "skills/<<ID>>/skill.md": """\
---
name: <<TITLE>>
description: The caller wants help with <<WORDS>>.
examples:
  - I need help with <<WORDS>>
  - It is about <<WORDS>>
---
:::ordered_block id=main
steps:
  - id: ask_details
    collect: details
    utterance: utter_ask_details
  - id: work
    execute_tool: record_<<ID>>
  - id: tell_result
    action: utter_done
:::
""",
    "skills/<<ID>>/memory.yml": """\
# yaml-language-server: $schema=<<SCHEMAS>>/skill-memory.json
schema:
  public:
    details:
      type: text
      description: What exactly the caller needs, in their own words.
""",
    "skills/<<ID>>/responses.yml": """\
# yaml-language-server: $schema=<<SCHEMAS>>/responses.json
responses:
  utter_ask_details:
    - text: "Tell me a little more about that."
  utter_done:
    - text: "Thank you. I have made a note of it."
""",
    "skills/<<ID>>/tools.py": '''\
"""Tools of this skill. The model sees name, description and arguments of each."""

from voice_agent.dialogue import ToolContext, ToolResult, tool


@tool(description="Record what the caller needs.")
async def record_<<ID>>(details: str, context: ToolContext = None) -> ToolResult:
    # Replace this with a call to your own system.
    return ToolResult(llm_response={"ok": True, "details": details})
''',
    "tests/<<ID>>.yml": """\
# yaml-language-server: $schema=<<SCHEMAS>>/conversations.json
conversations:
  - name: "<<TITLE>>: what the caller needs is recorded"
    steps:
      - say: I need help with <<WORDS>>
        model:
          - start_skill: {skill: <<ID>>}
        expect:
          said: {response: utter_ask_details}
      - say: It stopped working this morning
        model:
          - set_fields: {details: It stopped working this morning}
        expect:
          ran: {record_<<ID>>: {details: It stopped working this morning}}
          said: {response: utter_done}
          skill: {completed: <<ID>>}
""",
}
