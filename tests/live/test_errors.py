"""What services mean when they say no, and what is changed for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from reread.models._errors import Trouble, from_body, from_response
from reread.models._profile import Profile, adjusted


def trouble(status: int, body: Any, **headers: str) -> Trouble:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return from_response(status, named, data)


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


class TestErrors:
    @pytest.mark.parametrize(
        "text",
        [
            "This model's maximum context length is 8192 tokens. However, you requested 9001",
            "prompt is too long: 210000 tokens > 200000 maximum",
            "the request exceeds the available context size, try increasing it",
            "Requested tokens (5000) exceed context window of 4096",
            "Input length 5000 exceeds the maximum context length",
            "The input token count (1100000) exceeds the maximum number of tokens allowed",
            "Your input exceeds the context window of this model.",
            "Please reduce the length of the messages or completion.",
            "input is too long for requested model",
            "Prompt contains 40000 tokens; too large for model with 32768 maximum context length",
        ],
    )
    def test_an_overflow_is_known_by_its_many_wordings(self, text: str) -> None:
        assert trouble(400, said(text)).action == "compact"

    def test_an_overflow_tells_the_window(self) -> None:
        text = "This model's maximum context length is 8192 tokens. You sent 9001."
        assert trouble(400, said(text)).window == 8192

    @pytest.mark.parametrize("status", [429, 503, 529])
    def test_a_throttle_is_asked_again(self, status: int) -> None:
        assert (
            trouble(status, said("Rate limit reached: too many tokens per min")).action == "retry"
        )

    @pytest.mark.parametrize(
        ("text", "wait"),
        [
            ("Please try again in 20s.", 20),
            ("Please try again in 1m0.5s.", 60.5),
            ("try again in 250ms", 0.25),
            ("Please retry after 3 seconds", 3),
            ("Retry in 2 minutes", 120),
        ],
    )
    def test_a_wait_may_stand_in_the_text(self, text: str, wait: float) -> None:
        assert trouble(429, said(f"Rate limit. {text}")).wait == pytest.approx(wait)

    def test_a_wait_that_is_too_long_ends_the_run(self) -> None:
        found = trouble(429, said("Slow down."), retry_after="3600")
        assert (found.action, found.kind) == ("fail", "rate_limit")

    @pytest.mark.parametrize(
        "body",
        [
            said("You exceeded your current quota", code="insufficient_quota"),
            said("Insufficient Balance", code="invalid_request_error"),
            said("Your credit is used up; billing"),
        ],
    )
    def test_a_used_up_quota_is_not_asked_again(self, body: Any) -> None:
        assert (trouble(429, body).action, trouble(429, body).kind) == ("fail", "quota")

    @pytest.mark.parametrize(
        ("status", "body", "kind"),
        [
            (401, said("Incorrect API key provided: sk-ab***yz"), "auth"),
            (403, {"detail": "Not authorized"}, "auth"),
            (404, said("The model `x` does not exist"), "config"),
            (404, {"detail": "Not Found"}, "config"),
            (400, said("content_policy_violation: blocked by content filter"), "refused"),
            (400, said("registry.local/x does not support tools"), "config"),
            (405, b"", "config"),
        ],
    )
    def test_what_will_not_clear_stops_with_its_kind(
        self, status: int, body: Any, kind: str
    ) -> None:
        assert (trouble(status, body).action, trouble(status, body).kind) == ("fail", kind)

    @pytest.mark.parametrize(
        "body",
        [
            said("boom"),
            {"error": "boom"},
            {"object": "error", "message": "boom", "code": 400},
            [said("boom")],
            {"detail": "boom"},
            {"detail": [{"loc": ["body", "x"], "msg": "boom"}]},
            {"message": "boom"},
            b"boom",
        ],
    )
    def test_a_message_is_found_in_every_wrapping(self, body: Any) -> None:
        assert "boom" in trouble(400, body).text

    @pytest.mark.parametrize("code", [429, "429", 502, 503])
    def test_an_error_inside_of_a_200_counts_by_its_own_code(self, code: Any) -> None:
        assert from_body({"code": code, "message": "upstream"}, status=200).action == "retry"

    @pytest.mark.parametrize(
        "text", ["sk-proj-abcdefgh12345", "Bearer abcdef", "sk-ab***yz", "key gsk-12345678"]
    )
    def test_keys_are_not_shown(self, text: str) -> None:
        shown = trouble(401, said(f"Wrong: {text} is no key")).text
        assert "abcdef" not in shown
        assert "***" not in shown
        assert "12345" not in shown

    def test_pages_are_told_by_their_title_alone(self) -> None:
        page = b"<html><head><title>502 Bad\nGateway</title></head><body>long</body></html>"
        found = trouble(502, page, content_type="text/html")
        assert found.action == "retry"
        assert "502 Bad Gateway" in found.text
        assert "<" not in found.text


class TestAdjusting:
    def after(
        self, text: str, profile: Profile | None = None, *, sent: Mapping[str, Any] | None = None
    ) -> Profile | None:
        found = trouble(400, said(text))
        assert found.action == "adjust"
        asked = {"model": "m", "stream": True, "tools": [], **(sent or {})}
        return adjusted(profile or Profile(), found, asked)

    @pytest.mark.parametrize(
        ("text", "name"),
        [
            ("Unsupported value: 'temperature' does not support 0", "temperature"),
            ("Unrecognized request argument supplied: stream_options", "stream_options"),
            ("`parallel_tool_calls` is not supported by this model", "parallel_tool_calls"),
            ("body.top_p: Extra inputs are not permitted", "top_p"),
            ("property 'seed' is unsupported", "seed"),
            ("Unknown field: reasoning_effort", "reasoning_effort"),
        ],
    )
    def test_a_parameter_that_is_named_is_left_out(self, text: str, name: str) -> None:
        profile = self.after(text, sent={name: 1})
        assert profile is not None
        assert profile.parameters({name: 1, "other": 2}) == {"other": 2}

    @pytest.mark.parametrize(
        ("text", "sent", "takes"),
        [
            (
                "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
                {"max_tokens": 9000},
                {"max_completion_tokens": 9000},
            ),
            (
                "max_completion_tokens: Extra inputs are not permitted; did you mean max_tokens",
                {"max_completion_tokens": 9000},
                {"max_tokens": 9000},
            ),
            (
                "max_tokens must be less than or equal to 4096",
                {"max_tokens": 9000},
                {"max_tokens": 4096},
            ),
            (
                "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]",
                {"max_tokens": 9000},
                {"max_tokens": 8192},
            ),
            ("max_tokens is too large: 9000", {"max_tokens": 9000}, {}),
        ],
    )
    def test_a_cap_is_renamed_or_lowered(
        self, text: str, sent: dict[str, Any], takes: dict[str, Any]
    ) -> None:
        profile = self.after(text, sent=sent)
        assert profile is not None
        assert profile.parameters(sent) == takes

    def test_a_forced_choice_is_let_go(self) -> None:
        text = "tool_choice does not support being set to required or object in thinking mode"
        profile = self.after(text, sent={"tool_choice": "required"})
        assert profile is not None
        assert profile.parameters({"tool_choice": "required"}) == {"tool_choice": "auto"}

    @pytest.mark.parametrize(
        ("text", "field", "value"),
        [
            ("messages.2.content: Input should be a valid string", "empty_content", ""),
            ("Invalid value for 'content': expected a string, got null.", "empty_content", ""),
            ("Expected last role User or Tool; roles must alternate user/assistant", "merge", True),
            ("Unexpected role 'user' after role 'tool'", "fold_users", True),
            (
                "Tool call id was call_123 but must be a-z, A-Z, 0-9, with a length of 9",
                "short_ids",
                True,
            ),
            ("messages.1.assistant.foo: Extra inputs are not permitted", "unknown_fields", False),
            ("property 'messages.1.reasoning_content' is unsupported", "unknown_fields", False),
            (
                "The reasoning_content in the thinking mode must be passed back",
                "fill",
                {"reasoning_content": ""},
            ),
            ("System role not supported", "no_system", True),
            ("this model does not support streaming with tools: stream", "stream", False),
        ],
    )
    def test_a_history_is_told_as_the_host_takes_it(
        self, text: str, field: str, value: Any
    ) -> None:
        profile = self.after(text)
        assert profile is not None
        assert getattr(profile, field) == value

    def test_a_word_of_the_schema_is_taken_out(self) -> None:
        text = 'Unknown name "additionalProperties" at tools[0].function_declarations'
        profile = self.after(text)
        assert profile is not None
        assert profile.schema_words == {"additionalProperties"}

    def test_nothing_is_changed_twice(self) -> None:
        text = "Unsupported value: 'temperature'"
        profile = self.after(text, sent={"temperature": 1})
        assert self.after(text, profile, sent={"temperature": 1}) is None
