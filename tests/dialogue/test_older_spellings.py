"""A project written for the engine in its older spellings loads and runs unchanged."""

from __future__ import annotations

from pathlib import Path

from tests.fakes.model import tool_call
from tests.support.dialogue_projects import caller
from voice_agent.diagnostics import Severity

FILES = {
    "agent.yml": """
        agent:
          id: older
          persona: You are the voice of an insurance line.
          language: en
          voice: {enabled: true, asr: {name: deepgram}, tts: {name: cartesia}}
          rules:
            - Never guess a policy number.
          references:
            instructions: Quote the terms as they are written.
        prompts:
          text_rules: |
            - One sentence at a time.
        """,
    "integrations.yml": """
        llm: {provider: embedded, model: minilm}
        mcp_servers: [{name: banking, type: http, url: "http://127.0.0.1:9/mcp"}]
        channels:
          rest: {enabled: true}
          inspector: {enabled: true, asr: {name: deepgram, eot_threshold: 0.7, eot_timeout_ms: 5000}}
        """,
    "endpoints.yml": """
        nlg: {type: rephrase, llm: {model_group: small}}
        model_groups:
          - id: small
            models: [{provider: openai, model: gpt-small, api_key: "${OLDER_KEY}"}]
        tracker_store: {type: SQL, dialect: postgresql}
        event_broker: {type: kafka}
        """,
    "lib/policies.py": 'POLICIES = ["car", "home"]\n',
    "tools/shared.py": """
        from lib.policies import POLICIES
        from rasa.calm_v2.tools.decorator import tool, ToolContext
        from rasa.calm_v2.tools.result import ToolResult

        @tool(description="List policies")
        async def list_policies(context: ToolContext = None) -> ToolResult:
            context.memory.set("policies", len(POLICIES))
            return ToolResult(llm_response={"policies": POLICIES})
        """,
    "hooks.py": """
        from rasa.mantle.hooks import modify_outgoing_text

        @modify_outgoing_text
        async def no_numbers(payload):
            return payload.model_copy(update={"text": payload.text.replace("4242", "the card")})
        """,
    "memory.yml": "policies: {type: int}\n",
    "responses.yml": """
        responses:
          utter_claim_started:
            - text: "Let us start, card 4242."
              metadata: {rephrase: true}
          utter_done: Your claim is in.
        """,
    "skills/file_claim/skill.md": """
        ---
        name: File Claim
        description: Start a claim.
        import_tools: [list_policies, "mcp/banking:get_balance"]
        tool_constraints:
          - complete_skill: {description: Call when the claim is in.}
        complete_when: >
          session.file_claim.submitted == True
          and session.project.policies > 0
        routing: {engine_managed: false}
        ---
        # Filing a claim

        if: session.project.policies
        The customer has policies.

        Run @block.claim first.

        :::ordered_block id=claim
        name: Claim
        description: The claim itself.
        steps:
          - id: prepare
            execute_tool: list_policies
          - id: say
            action: utter_claim_started
          - id: wait
            action: action_listen
          - id: talk
            instructions: |
              if: session.project.policies > 1
              Ask which policy.
              if: session.project.policies == 1
              Name the policy.
            complete_when: session.file_claim.policy_name
          - id: submit
            set_memory: {submitted: true}
          - id: done
            action: utter_done
        :::
        """,
    "skills/file_claim/memory.yml": """
        schema:
          public:
            policy_name: {type: categorical, enum_values: [Car, Home], llm_settable: true, anonymization: {rule: mask}}
            submitted: {type: bool, initial_value: "False"}
        """,
    "skills/goodbye/skill.md": """
        ---
        name: Goodbye
        description: End the call.
        ---
        :::ordered_block id=main
        steps:
          - action: hangup
        :::
        """,
}


async def test_it_loads_with_warnings_alone_and_runs(tmp_path: Path) -> None:
    script = [
        tool_call("start_skill", skill="file_claim"),
        tool_call("run_block", block="claim"),
        "Good, off we go, card 4242.",
        "Which policy is it about?",
        tool_call("set_fields", policy_name="car"),
        "Can I do anything else?",
        tool_call("start_skill", skill="goodbye"),
    ]
    bench = caller(tmp_path, FILES, script, channel="text")
    assert {p.severity for p in bench.agent.problems} <= {Severity.WARNING, Severity.NOTE}
    ids = {p.id for p in bench.agent.problems}
    assert {"endpoints.unused", "endpoints.missing_variable", "config.unused"} <= ids
    assert (await bench.says("I had an accident")).messages == ["Good, off we go, card the card."]
    said = await bench.says("my car")
    assert said.messages == ["Which policy is it about?"]
    system = bench.model.requests[-1].messages[0].content
    assert ("Ask which policy." in system, "Name the policy." in system) == (True, False)
    assert ("One sentence at a time." in system, "Never guess a policy number." in system) == (True, True)
    assert "Quote the terms" in system
    assert (await bench.says("the car")).messages == ["Your claim is in.", "Can I do anything else?"]
    assert "skill_completed" in bench.kinds
    assert (await bench.says("bye")).sink.hung_up
    tools = [e["tool"] for e in bench.events("tool_executed")]
    assert tools == [e["tool"] for e in bench.events("mcp_tool_executed")] == ["list_policies", "listen", "hangup"]
