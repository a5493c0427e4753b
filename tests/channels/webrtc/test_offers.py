from __future__ import annotations

import json

import pytest

from voice_agent.channels.webrtc.offers import MAX_CANDIDATES, OPUS_WISHES, BadOffer, finish_answer, read_offer

SDP = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\n"
CANDIDATE = "a=candidate:1 1 udp 2122260223 192.0.2.9 5000 typ host\r\n"
NAMED = "a=candidate:2 1 udp 2122260223 1f4d-5e.local 5001 typ host\r\n"


def body(**fields: object) -> bytes:
    return json.dumps({"sdp": SDP, "type": "offer", **fields}).encode()


def test_an_offer_is_read_with_what_the_caller_chose() -> None:
    offer = read_offer(body(conversation="me", events=True, metrics="1"))
    assert (offer.sdp, offer.conversation_id, offer.events, offer.metrics) == (SDP, "me", True, True)


def test_a_caller_who_names_no_conversation_gets_a_new_one() -> None:
    assert read_offer(body()).conversation_id != read_offer(body()).conversation_id


@pytest.mark.parametrize(
    ("given", "status", "code"),
    [
        (b"", 400, "bad_body"),
        (b"[" * 50_000, 400, "bad_body"),
        (b"[1]", 400, "bad_body"),
        (body(type="answer"), 422, "bad_offer"),
        (body(type=["offer"]), 422, "bad_offer"),
        (body(conversation="a b"), 422, "bad_conversation"),
        (body(conversation=7), 422, "bad_conversation"),
        (body(sdp=None), 422, "bad_sdp"),
        (body(sdp="hello"), 422, "bad_sdp"),
        (body(sdp="v=0\r\nm=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n"), 422, "no_audio"),
        (body(sdp=SDP.replace("opus/48000/2", "PCMU/8000")), 422, "no_opus"),
        (body(sdp=SDP + "m=video 9 UDP/TLS/RTP/SAVPF 96\r\n" * 8), 422, "too_many_media"),
        (body(sdp=SDP + CANDIDATE * (MAX_CANDIDATES + 1)), 422, "too_many_candidates"),
    ],
)
def test_an_offer_that_cannot_be_used_says_what_would_be_right(given: bytes, status: int, code: str) -> None:
    with pytest.raises(BadOffer) as caught:
        read_offer(given)
    assert (caught.value.status, caught.value.code) == (status, code)


def test_names_for_addresses_are_left_out_and_then_the_end_of_candidates_too() -> None:
    sdp = read_offer(body(sdp=SDP + NAMED + "a=end-of-candidates\r\n")).sdp
    assert sdp == SDP
    with_address = SDP + CANDIDATE + "a=end-of-candidates\r\n"
    assert read_offer(body(sdp=with_address)).sdp == with_address


def test_the_answer_asks_for_speech_and_names_the_public_address() -> None:
    answer = SDP + CANDIDATE + CANDIDATE.replace("typ host", "typ srflx")
    finished = finish_answer(answer, "198.51.100.7")
    assert f"a=fmtp:111 {OPUS_WISHES}\r\n" in finished
    assert finished.count("198.51.100.7") == 1
    assert finished.count("192.0.2.9") == 1
    assert finish_answer(answer).count("192.0.2.9") == 2
