"""The parsers of foreign text, for as long as it is asked: every input is new, and the count is reported."""

import sys
import time

import pytest

from support.fuzz import parsers as parser_fuzz
from support.fuzz.filters import FilterFuzz
from support.fuzz.specs import SpecFuzz

_ROUND = 2_000


@pytest.mark.parametrize("kind", [*parser_fuzz.ALL, FilterFuzz, SpecFuzz], ids=lambda kind: kind.__name__)
def test_fuzz_a_parser(kind, share, capsys, record_property):
    seed = time.time_ns()
    fuzz, tried, end = kind(seed), 0, time.monotonic() + share
    try:
        while time.monotonic() < end or not tried:
            for _ in range(_ROUND):
                tried += 1
                fuzz.one()
    except Exception as error:
        error.add_note(f"{kind.__name__}(seed={seed}), input {tried}")
        raise
    finally:
        getattr(fuzz, "close", lambda: None)()
        record_property("inputs", tried)
        with capsys.disabled():
            sys.stdout.write(f"\n{kind.__name__}: {tried:,} inputs\n")
