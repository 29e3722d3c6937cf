"""Random orders, judged by the client and by the lab, for as long as it is asked: the count is reported."""

import sys
import time

from support.fuzz.specs import SpecFuzz

_ROUND = 2_000


def test_fuzz_orders(share, capsys, record_property):
    seed = time.time_ns()
    fuzz, tried, end = SpecFuzz(seed), 0, time.monotonic() + share
    try:
        while time.monotonic() < end or not tried:
            for _ in range(_ROUND):
                tried += 1
                fuzz.one()
    except Exception as error:
        error.add_note(f"SpecFuzz(seed={seed}), input {tried}")
        raise
    finally:
        fuzz.close()
        record_property("inputs", tried)
        with capsys.disabled():
            sys.stdout.write(f"\nSpecFuzz: {tried:,} inputs\n")
