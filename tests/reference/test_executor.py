"""One attempt: the pause after a failure, and results that fit and are JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dtq_reference.executor import ResultNotJson, bounded_result, retry_delay_ms
from dtq_reference.settings import Settings
from hypothesis import assume, given
from hypothesis import strategies as st

ATTEMPTS = st.integers(1, 1000)
DRAWS = st.floats(-1, 1)
DELAYS = st.floats(0, 86_400)
SETTINGS = st.builds(Settings, retry_base_delay=DELAYS, retry_max_delay=DELAYS,
                     retry_jitter=st.floats(0, 1))


@given(ATTEMPTS, SETTINGS, DRAWS)
def test_a_delay_is_the_capped_power_give_or_take_the_jitter(
        attempt: int, settings: Settings, draw: float) -> None:
    middle_ms = 1000 * min(settings.retry_max_delay,
                           settings.retry_base_delay * 2.0 ** (attempt - 1))
    expected = middle_ms * (1 + settings.retry_jitter * draw)
    assert retry_delay_ms(attempt, settings, draw) == pytest.approx(expected, abs=0.51)


@given(ATTEMPTS, SETTINGS)
def test_a_delay_that_is_drawn_lies_within_the_jitter_and_is_never_below_nought(
        attempt: int, settings: Settings) -> None:
    least, most = (retry_delay_ms(attempt, settings, draw) for draw in (-1, 1))
    assert 0 <= least <= retry_delay_ms(attempt, settings) <= most
    assert most <= round(1000 * settings.retry_max_delay * (1 + settings.retry_jitter))


@given(st.integers(1, 999), SETTINGS)
def test_without_jitter_each_delay_is_twice_the_one_before_until_the_cap(
        attempt: int, settings: Settings) -> None:
    now, following = (retry_delay_ms(number, settings, 0) for number in (attempt, attempt + 1))
    assert now <= following
    if following < round(1000 * settings.retry_max_delay):
        assert abs(following - 2 * now) <= 1


def test_the_defaults_begin_at_a_second_and_end_at_a_minute() -> None:
    assert [retry_delay_ms(attempt, Settings(), 0) for attempt in (1, 2, 3, 6, 7, 50)] == [
        1_000, 2_000, 4_000, 32_000, 60_000, 60_000]


@given(st.recursive(st.none() | st.integers(-10**9, 10**9) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=300), lambda inner: st.lists(inner)),
    st.integers(64, 400))
def test_a_result_fits_is_valid_json_and_says_when_it_was_cut(value: Any, limit: int) -> None:
    result = bounded_result(value, limit)
    found = json.loads(result)
    assert len(result) <= limit
    if found != value:
        whole = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        assert found["truncated"] is True
        assert found["bytes"] > limit
        assert whole.startswith(found["excerpt"].encode()) or "\\u" in whole.decode()


@given(st.text(st.sampled_from('"\\\x00\x1f\x7f\nä€😀'), min_size=300))
def test_an_excerpt_of_what_must_be_escaped_fits_too(value: str) -> None:
    result = bounded_result(value, 256)
    assume(len(value.encode()) > 256)
    assert len(result) <= 256
    assert json.loads(result)["truncated"] is True


@pytest.mark.parametrize("value", [object(), "\ud800", {1.5: object()}])
def test_a_value_without_a_json_form_is_no_result(value: Any) -> None:
    with pytest.raises(ResultNotJson, match="the result is not JSON"):
        bounded_result(value, 1000)


def test_a_result_that_holds_itself_is_no_result() -> None:
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ResultNotJson):
        bounded_result(value, 1000)
