"""Python imports this at every start when the folder is on PYTHONPATH: it records when a flow process reaches which step.

Each mark is one line of JSON in the file that BENCH_WAKE_MARKS names. Without that variable nothing happens.
"""

import importlib.abc
import json
import os
import sys
import time
from pathlib import Path

PLACES = {  # functions of Prefect and of the campaign flow whose call is a step of a wake
    "prefect.flow_engine": {"load_flow_run": "imports done", "run_flow": "engine begun"},
    "prefect_assay.flows.campaign": {"play_campaign": "first line"},
}


def mark(what, moment=None):
    line = json.dumps(
        {"pid": os.getpid(), "what": what, "at": moment or time.time(), "cpu": time.process_time()}
    )
    with Path(os.environ["BENCH_WAKE_MARKS"]).open("a") as file:
        file.write(line + "\n")


def marked(function, what):
    def call(*args, **kwargs):
        mark(what)
        return function(*args, **kwargs)

    call.__wrapped__ = function
    call.__name__ = getattr(function, "__name__", what)
    return call


class Marker(importlib.abc.MetaPathFinder):
    """Finds a module as the others do, and wraps its functions once it is there."""

    def find_spec(self, name, path=None, target=None):
        if name not in PLACES:
            return None
        for finder in sys.meta_path:
            if finder is not self:
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    return self._wrapping(spec, PLACES[name])
        return None

    @staticmethod
    def _wrapping(spec, functions):
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            for function, what in functions.items():
                setattr(module, function, marked(getattr(module, function), what))

        spec.loader.exec_module = exec_module
        return spec


def started_at():
    """When this process was made, to 10 ms, from /proc."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    up = float(Path("/proc/uptime").read_text().split()[0])
    return time.time() - up + ticks / os.sysconf("SC_CLK_TCK")


if "BENCH_WAKE_MARKS" in os.environ:
    mark("process made", started_at())
    mark("interpreter up")
    os.register_at_fork(after_in_child=lambda: mark("process made"))
    sys.meta_path.insert(0, Marker())
