"""Conversation tests, played: what passes, what fails and on which line, and what a test can arrange."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.conversation_tests import FILES, play, play_one
from voice_agent.authoring.player import Outcome, Status

BOOK = "model: [{start_skill: {skill: book}}]"
TUESDAY = "model: [{set_fields: {day: Tuesday}}]"


def passed(outcome: Outcome) -> bool:
    assert [f"{f.line}: {f.what} {f.expected} / {f.actual}" for f in outcome.failures] == []
    return outcome.status is Status.PASSED


def failed(outcome: Outcome, line: int, what: str) -> str:
    """Return expected and actual of the one failure."""
    assert outcome.status is Status.FAILED
    (failure,) = outcome.failures
    assert (failure.line, what in failure.what) == (line, True), failure
    return f"{failure.expected} / {failure.actual} {failure.hint}".strip()


def test_a_whole_conversation_passes(tmp_path: Path) -> None:
    outcome = play_one(
        tmp_path,
        f"""
        - expect: {{said: {{response: utter_greet}}, hung_up: false, skill: none, status: completed}}
        - say: I want to book
          {BOOK}
          expect: {{said: which day, skill: book, memory: {{reference: null, day: null}}}}
        - say: Tuesday
          {TUESDAY}
          expect:
            said: ["Your reference is B-17", {{response: utter_completed}}]
            ran: {{book_slot: {{day: Tuesday}}}}
            memory: {{project.reference: B-17, book.day: {{matches: "^Tues"}}}}
            skill: {{completed: book, started: [default_completed]}}
            never: {{said: sorry, ran: hangup}}
        """,
    )
    assert passed(outcome)
    assert [line.kind for line in outcome.transcript if line.kind in ("caller", "agent")][:3] == [
        "caller", "agent", "caller",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("expect", "line", "what", "told"),
    [
        ("said: Good evening", 8, "said", "'Good evening' / “Which day suits you?”"),
        ("said: {equals: Which day}", 8, "said", "exactly 'Which day' / “Which day suits you?”"),
        ("said: {response: utter_ask_da}", 8, "said", "Did you mean 'utter_ask_day'?"),
        ("silent: true", 8, "silent", "nothing is said / “Which day suits you?”"),
        ("ran: {book_slott: {day: x}}", 8, "ran", "no tool ran Did you mean 'book_slot'?"),
        ("memory: {project.referenc: x}", 8, "memory", "Did you mean 'project.reference'?"),
        ("memory: {project.reference: x}", 8, "memory", 'project.reference = "x" / unset'),
        ("skill: clock", 8, "skill.active", "active skill clock / book"),
        ("skill: {completed: boook}", 8, "skill.completed", "Did you mean 'book'?"),
        ("confirming: book_slot", 8, "confirming", "book_slot / none"),
        ("hung_up: true", 8, "hung_up", "the agent hangs up / the agent stays on the line"),
        ("status: cancelled", 8, "status", "cancelled / completed"),
        ("never: {said: day}", 8, "never.said", "never said: 'day' / “Which day suits you?”"),
    ],
)
def test_what_does_not_hold_is_shown_with_its_line_and_what_was_there(
    expect: str, line: int, what: str, told: str, tmp_path: Path
) -> None:
    outcome = play_one(tmp_path, f"- say: book\n  {BOOK}\n  expect:\n    {expect}\n")
    assert told in failed(outcome, line - 1, what)
    assert outcome.transcript[-1].text.startswith("Which day suits you?")


def test_a_transcript_keeps_the_order_of_words_and_deeds(tmp_path: Path) -> None:
    steps = "- say: what day is it\n  model: [{start_skill: {skill: clock}}, {say: One moment., today: }, A Monday.]\n"
    kinds = [line.kind for line in play_one(tmp_path, steps).transcript]
    assert kinds[-5:] == ["caller", "skill", "agent", "tool", "agent"]


def test_nothing_after_the_first_failing_step_is_played(tmp_path: Path) -> None:
    outcome = play_one(tmp_path, f"- say: book\n  {BOOK}\n- expect: {{silent: true}}\n- say: Tuesday\n  {TUESDAY}\n")
    assert "Tuesday" not in " ".join(line.text for line in outcome.transcript)
    assert failed(outcome, 6, "silent")


def test_a_model_call_without_a_reply_says_what_the_model_could_have_done(tmp_path: Path) -> None:
    outcome = play_one(tmp_path, "- say: I want to book\n")
    shown = [f for f in outcome.failures if "no reply" in f.what]
    assert shown and "skills: book, clock" in shown[0].actual and "start_skill" in shown[0].actual


def test_a_reply_nobody_asked_for_fails_the_step(tmp_path: Path) -> None:
    outcome = play_one(tmp_path, "- say: book\n  model: [{start_skill: {skill: book}}, and more]\n")
    assert "and more" in failed(outcome, 5, "never asked for")


def test_the_fill_after_a_skill_began_takes_a_reply_only_if_it_sets_fields(tmp_path: Path) -> None:
    assert passed(
        play_one(
            tmp_path,
            "- say: book Tuesday\n  model: [{start_skill: {skill: book}}, {set_fields: {day: Tuesday}}]\n"
            "  expect: {ran: {book_slot: {day: Tuesday}}}\n",
        )
    )


def test_a_model_that_fails_is_expected_or_fails_the_test(tmp_path: Path) -> None:
    steps = "- say: hello\n  model: [{error: connection lost}]\n"
    (failure,) = play_one(tmp_path, steps).failures
    assert "connection lost" in failure.what
    assert passed(play_one(tmp_path, steps + "- expect: {status: error, said: sorry}\n"))


def test_responses_that_may_be_reworded_are_said_as_written_and_no_other_model_is_asked(tmp_path: Path) -> None:
    files = {
        **FILES,
        "responses.yml": FILES["responses.yml"].replace(
            "utter_greet: Welcome to the booking line.", "utter_greet: {text: Welcome as written., rephrase: true}"
        ),
        "endpoints.yml": (
            "nlg: {type: rephrase, llm: {model_group: g}}\nmodel_groups:\n  - id: g\n    models:\n"
            "      - {provider: openai, model: x, api_base: 'http://127.0.0.1:9/v1'}\n"
        ),
    }
    (outcome,) = play(tmp_path, "- name: it\n  steps:\n    - expect: {said: Welcome as written.}\n", files=files)
    assert passed(outcome)


def test_text_and_calls_come_in_one_reply(tmp_path: Path) -> None:
    assert passed(
        play_one(
            tmp_path,
            "- say: what day is it\n  model:\n    - start_skill: {skill: clock}\n    - {say: One moment., today: }\n"
            "    - It is a fine day.\n  expect: {said: [One moment., It is a fine day.], ran: today}\n",
        )
    )


def test_a_stub_stands_in_for_a_tool_and_may_change_from_call_to_call(tmp_path: Path) -> None:
    stubs = "{book_slot: [{error: service down}, {result: {ok: true}, sets: {reference: C-2}, takes_s: 0.01}]}"
    steps = f"""
        - say: book
          {BOOK}
        - say: Tuesday
          {TUESDAY}
          expect:
            ran: {{tool: book_slot, arguments: {{day: Tuesday}}, failed: true, times: 1}}
            memory: {{project.reference: null}}
        - say: book again
          {BOOK}
        - say: Friday
          model: [{{set_fields: {{day: Friday}}}}]
          expect:
            ran: {{tool: book_slot, result: {{ok: true}}, failed: false}}
            memory: {{project.reference: C-2}}
        """
    assert passed(play_one(tmp_path, steps, stubs=stubs))


def test_a_caller_who_interrupts_a_tool_cancels_the_turn_and_it_runs_again_later(tmp_path: Path) -> None:
    assert passed(
        play_one(
            tmp_path,
            f"""
            - say: book
              {BOOK}
            - say: Tuesday
              {TUESDAY}
              interrupt: {{during: book_slot, after_s: 0.01}}
              expect: {{status: cancelled, silent: true, memory: {{reference: null}}, never: {{ran: book_slot}}}}
            - say: go on
              model: [{{listen: {{}}}}]
              expect: {{ran: {{tool: book_slot, times: 1}}, memory: {{project.reference: B-17}}}}
            """,
        )
    )


def test_a_caller_who_interrupts_a_reply_has_heard_what_was_said_by_then(tmp_path: Path) -> None:
    outcome = play_one(
        tmp_path,
        "- say: hello\n  model: [One two three four five six.]\n  interrupt: {after_words: 3}\n"
        "  expect: {heard: {equals: One two three}, status: cancelled}\n",
    )
    assert passed(outcome)
    assert "(interrupts after “One two three”)" in [line.text for line in outcome.transcript]


@pytest.mark.parametrize("interrupt", ["{during: book_slot}", "{after_words: 40}", "{during: today, after_s: 9}"])
def test_an_interruption_that_found_no_moment_fails(interrupt: str, tmp_path: Path) -> None:
    outcome = play_one(tmp_path, f"- say: hello\n  model: [Hello.]\n  interrupt: {interrupt}\n")
    failed(outcome, 6, "never got to interrupt")


def test_the_clock_stands_still_for_engine_tools_and_helpers_and_moves_by_waiting(tmp_path: Path) -> None:
    ask = "model: [{start_skill: {skill: clock}}, {today: {}}, Done.]"
    later = "model: [{today: {}}, Done.]"
    steps = f"""
        - say: what day is it
          {ask}
          expect:
            ran: {{tool: today, result: {{today: "2030-05-06", now: "23:30", lib: [2030, 2030], known: true}}}}
        - wait: 40 min
        - say: and now
          {later}
          expect: {{ran: {{tool: today, result: {{today: "2030-05-07", now: "00:10"}}}}}}
        """
    assert passed(play_one(tmp_path, steps, now="2030-05-06 23:30"))


def test_real_time_is_untouched_by_a_test_whose_clock_stood_still(tmp_path: Path) -> None:
    import datetime
    import time

    before = datetime.datetime, time.time
    play_one(tmp_path, "- expect: {said: Welcome}\n", now="2030-05-06")
    assert (datetime.datetime, time.time) == before
    assert datetime.date.today().year < 2030 or time.time() > 1_893_456_000


def test_a_session_that_waited_too_long_begins_anew(tmp_path: Path) -> None:
    steps = """
        - wait: 61 min
        - say: hello
          model: [Hello again.]
          expect: {said: [{response: utter_greet}, Hello again.]}
        """
    assert passed(play_one(tmp_path, steps, now="2030-05-06"))


def test_a_caller_who_was_cut_off_comes_back_without_a_second_greeting(tmp_path: Path) -> None:
    steps = f"""
        - say: book
          {BOOK}
        - disconnect: true
        - connect: true
          expect: {{silent: true, skill: book}}
        - say: Tuesday
          {TUESDAY}
          expect: {{ran: {{tool: book_slot, times: 1}}}}
        - hang_up: true
        - connect: true
          expect: {{said: {{response: utter_greet}}, skill: none, memory: {{project.reference: null}}}}
        """
    assert passed(play_one(tmp_path, steps, now="2030-05-06"))


def test_a_caller_may_speak_first_press_keys_and_bring_what_the_channel_knows(tmp_path: Path) -> None:
    steps = """
        - dtmf: "1#"
          model: [You pressed one.]
          expect: {said: [{response: utter_greet}, You pressed one.], memory: {caller: Ann}}
        - intent: /silence
          expect: {skill: {started: default_silence_check_in}}
        """
    assert passed(play_one(tmp_path, steps, connect="false", metadata="{caller: Ann}"))


def test_what_must_never_happen_in_a_conversation_is_watched_in_every_turn(tmp_path: Path) -> None:
    outcome = play_one(
        tmp_path, f"- say: book\n  {BOOK}\n- say: x\n  {TUESDAY}\n", never="{ran: {book_slot: {day: Tuesday}}}"
    )
    assert "book_slot(day='Tuesday')" in failed(outcome, 3, "ran")


def test_tests_do_not_share_memory_modules_or_stubs(tmp_path: Path) -> None:
    counting = FILES["skills/book/tools.py"].replace(
        '    await asyncio.sleep(0.05)\n', '    COUNT.append(1)\n'
    ).replace('"reference": "B-17"}', '"reference": len(COUNT)}') + "\nCOUNT = []\n"  # fmt: skip
    one = (
        f"  steps:\n    - say: book\n      {BOOK}\n    - say: x\n      {TUESDAY}\n"
        "      expect: {ran: {tool: book_slot, result: {reference: 1}}}\n"
    )
    outcomes = play(
        tmp_path, f"- name: one\n{one}- name: two\n{one}", files={**FILES, "skills/book/tools.py": counting}
    )
    assert all(passed(outcome) for outcome in outcomes)


def test_a_test_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    steps = f"- say: book\n  {BOOK}\n- say: x\n  {TUESDAY}\n"
    outcome = play_one(tmp_path, steps, timeout_s="0.2", stubs="{book_slot: {takes_s: 30}}")
    failed(outcome, 2, "longer than 0.2 seconds")


def test_a_live_test_of_a_model_that_costs_money_waits_for_live(tmp_path: Path) -> None:
    files = {**FILES, "integrations.yml": "llm: {provider: openai, model: x, api_key_env: A_KEY_THAT_IS_NOT_SET}\n"}
    tests = "- name: scripted\n  steps:\n    - expect: {said: Welcome}\n"
    (outcome,) = play(tmp_path, tests, files=files)
    assert passed(outcome), "a scripted test needs no key"
    (skipped,) = play(tmp_path, "- name: it\n  skip: not yet\n  steps:\n    - say: x\n", files=files)
    assert (skipped.status, skipped.reason) == (Status.SKIPPED, "not yet")


@pytest.mark.models
def test_live_plays_scripted_tests_with_the_project_s_model_except_those_that_insist(tmp_path: Path) -> None:
    tests = """
        - name: by default
          steps:
            - say: I want to book
              model: [{start_skill: {skill: clock}}]
              expect: {skill: book}
        - name: insists
          model: scripted
          steps:
            - say: I want to book
              model: [Never mind.]
              expect: {said: Never mind.}
        """
    assert all(passed(outcome) for outcome in play(tmp_path, tests, live=True))
