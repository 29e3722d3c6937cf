import gc
import os
import signal
import subprocess
import sys
import time
import weakref

import pytest

from prefect_assay.cli.ending_signals import EndingSignals

# SIGTERM where the import system has just taken its lock and nothing gives it back yet; then another thread imports.
IN_THE_MIDDLE_OF_AN_IMPORT = """
import os, signal, sys, threading, time
from prefect_assay.cli.ending_signals import EndingSignals

def watch(frame, event, _):
    if frame.f_globals.get("__name__") != "importlib._bootstrap" or frame.f_code.co_name != "cb":
        return None
    return strike

def strike(frame, event, _):
    if event == "line" and frame.f_lineno > frame.f_code.co_firstlineno + 1:
        sys.settrace(None)
        frame.f_trace = None
        print("struck", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
    return strike

def elsewhere():
    import colorsys
    print("imported", flush=True)

with EndingSignals() as ending:
    try:
        sys.settrace(watch)
        import wave
        time.sleep(5)
    except SystemExit as error:
        ending.seen()
        print("ends with", error.code, flush=True)
    other = threading.Thread(target=elsewhere, daemon=True)
    other.start()
    other.join(10)
os._exit(0)
"""


class Thing:
    pass


def _drop_and_wait(held):
    held.clear()
    gc.collect()
    time.sleep(5)


@pytest.mark.parametrize(
    ("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)]
)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_signal_that_is_swallowed_is_raised_again(number, kind):
    def collected(_):
        os.kill(os.getpid(), number)
        time.sleep(0.05)  # the handler runs here, where exceptions are swallowed

    before = signal.getsignal(number)
    with EndingSignals() as ending:
        held = [Thing()]
        watched = weakref.ref(held[0], collected)
        with pytest.raises(kind):
            _drop_and_wait(held)
        assert watched() is None
        ending.seen()
        os.kill(os.getpid(), number)
        time.sleep(0.3)  # neither the second signal nor the first one again
    assert signal.getsignal(number) is before
    time.sleep(0.3)


def test_a_signal_in_the_middle_of_an_import_leaves_no_lock_taken():
    done = subprocess.run(
        [sys.executable, "-c", IN_THE_MIDDLE_OF_AN_IMPORT],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout.splitlines() == ["struck", "ends with 143", "imported"], done.stderr
