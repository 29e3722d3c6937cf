import gc
import os
import signal
import time
import weakref

import pytest

from prefect_assay.cli.signals import Ending


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
    with Ending() as ending:
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
