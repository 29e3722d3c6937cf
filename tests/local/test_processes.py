import os
import subprocess
import sys
import time

import psutil
import pytest

from prefect_assay.errors import ConfigurationError
from prefect_assay.local.processes import (
    Child,
    command_of,
    is_alive,
    list_descendants,
)

# Starts a child in a session of its own and ignores SIGTERM, as the worst of servers would.
STUBBORN = """
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
print("ready", flush=True)
time.sleep(300)
"""


def _child(tmp_path, code):
    return Child(
        "worker", [sys.executable, "-c", code], env=dict(os.environ), cwd=tmp_path, log=tmp_path / "w.log"
    )


@pytest.mark.parametrize("end", [lambda child: child.stop(seconds=0.3), lambda child: child.kill()])
def test_everything_a_child_has_started_ends_with_it(tmp_path, end):
    child = _child(tmp_path, STUBBORN)
    child.wait_until(lambda: "ready" in child.log.read_text(), seconds=20)
    family = list_descendants(child.pid)
    assert len(family) == 1
    end(child)
    assert not child.running
    while is_alive(family[0]):  # the test's own limit ends the wait
        time.sleep(0.02)
    child.stop()  # again, harmless


def test_a_child_that_ends_is_reported_with_the_end_of_its_log(tmp_path):
    child = _child(tmp_path, "import sys; print('cannot bind'); sys.exit(3)")
    with pytest.raises(ConfigurationError, match=r"worker ended with code 3(.|\n)*w\.log(.|\n)*cannot bind"):
        child.wait_until(lambda: False, seconds=20)


def test_a_child_that_is_never_ready_is_reported(tmp_path):
    child = _child(tmp_path, "import time; time.sleep(60)")
    try:
        with pytest.raises(ConfigurationError, match="is not ready after"):
            child.wait_until(lambda: False, seconds=0.2)
    finally:
        child.stop()


def test_a_process_that_has_ended_is_in_no_list():
    ended = subprocess.Popen([sys.executable, "-c", ""])
    process = psutil.Process(ended.pid)
    while is_alive(process):  # until it waits for its parent only
        time.sleep(0.01)
    assert process not in list_descendants(os.getpid())
    assert command_of(process) == ""
    ended.wait()
    assert list_descendants(ended.pid) == []
