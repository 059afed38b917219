"""The API's times and durations, read strictly: a reply in another form is a failed test."""

import calendar
import re
import time

TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{3})Z")
UNITS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400}


def seconds_since_1970(text):
    match = TIME.fullmatch(text)
    assert match, f"not ISO 8601 UTC with milliseconds: {text!r}"
    whole = calendar.timegm(time.strptime(match[1], "%Y-%m-%dT%H:%M:%S"))
    return whole + int(match[2]) / 1000


def duration_seconds(text):
    parts = re.findall(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", text)
    assert parts and "".join(n + u for n, u in parts) == text, f"not a duration: {text!r}"
    return sum(float(number) * UNITS[unit] for number, unit in parts)


def assert_close(text, expected, slack=2.0):
    """The time `text` is `expected` (seconds since 1970), give or take a busy machine."""
    actual = seconds_since_1970(text)
    assert abs(actual - expected) <= slack, f"{text} is {actual - expected:+.3f} s off"
