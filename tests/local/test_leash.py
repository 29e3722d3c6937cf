"""Children end when their parent is killed, whatever they have started, and not before."""

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from prefect_assay.local.leash import Leash
from prefect_assay.local.processes import is_alive

# A parent with two children: one with a child in a session of its own, and one that was stopped before.
PARENT = """
import os, sys, time
from pathlib import Path
from prefect_assay.local.processes import StackProcesses
SERVER = '''
import subprocess, sys, time
below = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"], start_new_session=True)
print(below.pid, flush=True)
time.sleep(300)
'''
stack = StackProcesses(Path(sys.argv[1]))
stack.launch("server", ["-c", SERVER], dict(os.environ))
stack.launch("other", ["-c", "import time; time.sleep(300)"], dict(os.environ))
stack.stop("other")
while not stack.log("server").read_text().endswith("\\n"):
    time.sleep(0.02)
if len(sys.argv) > 2 and os.fork() == 0:
    os.close(1)
    time.sleep(20)  # holds the pipe open
    os._exit(0)
print(stack["server"].pid, stack.log("server").read_text(), end="", flush=True)
time.sleep(300)
"""


def started(tmp_path, *arguments):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path), *arguments], stdout=subprocess.PIPE, text=True
    )
    return parent, [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]


def are_gone(processes, seconds=40):
    end = time.monotonic() + seconds
    while any(is_alive(process) for process in processes):
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.parametrize("arguments", [(), ("fork",)], ids=["alone", "a fork holds the pipe"])
def test_everything_ends_with_a_killed_parent(tmp_path, arguments):
    parent, family = started(tmp_path, *arguments)
    helpers = [
        child for child in psutil.Process(parent.pid).children() if "leash" in " ".join(child.cmdline())
    ]
    assert len(family) == 2
    assert len(helpers) == 1
    assert all(map(is_alive, family))
    os.kill(parent.pid, signal.SIGKILL)
    parent.communicate()
    assert are_gone([*family, *helpers])


def test_nothing_is_ended_while_the_parent_lives_and_the_helper_ends_with_the_last_child():
    kept = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(300)"])
    leash = Leash()
    leash.hold(kept.pid)
    helper = psutil.Process(leash._helper.pid)
    leash.release(kept.pid)
    leash.release(kept.pid)
    assert are_gone([helper])
    assert kept.poll() is None
    leash.hold(kept.pid)
    leash._helper.kill()
    leash._helper.wait()
    leash.hold(kept.pid)  # somebody has ended the helper: there is another one
    assert leash._helper.poll() is None
    leash.release(kept.pid)
    kept.kill()
    kept.wait()


def test_a_command_runs_when_the_parent_is_gone_and_not_if_it_is_forgotten(tmp_path):
    program = (
        "import sys, time; from prefect_assay.local.leash import leash\n"
        "touch = lambda name: [sys.executable, '-c', f'open({name!r}, \"w\")']\n"
        "leash.run_at_end(touch(sys.argv[1])); leash.run_at_end(touch(sys.argv[2])); leash.forget(touch(sys.argv[1]))\n"
        "print('ready', flush=True); time.sleep(300)"
    )
    forgotten, made = tmp_path / "forgotten", tmp_path / "made"
    with subprocess.Popen(
        [sys.executable, "-c", program, str(forgotten), str(made)], stdout=subprocess.PIPE, text=True
    ) as parent:
        parent.stdout.readline()
        parent.kill()
    end = time.monotonic() + 40
    while not made.exists():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert not forgotten.exists()
