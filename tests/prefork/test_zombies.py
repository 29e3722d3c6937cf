"""How the end of a run is noticed after its fork server has ended, where no process reaps it."""

import subprocess
import sys
from threading import Thread

import pytest

from prefect_assay.prefork.starter import _wait_for


@pytest.mark.skipif(sys.platform != "linux", reason="flow runs are forked on Linux only")
def test_a_zombie_has_ended():
    """In a container without an init, process 1 is the worker, and reaps no foreign children."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    waiting = Thread(target=_wait_for, args=(child.pid,), daemon=True)
    waiting.start()
    waiting.join(0.5)
    assert waiting.is_alive()
    child.stdin.close()  # it ends by the end of its input, and stays a zombie until `wait`
    waiting.join(20)
    ended = not waiting.is_alive()
    child.wait()
    assert ended
    _wait_for(child.pid)  # reaped
