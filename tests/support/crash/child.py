"""The process that runs what is to be killed: `python child.py`, one JSON line in, one JSON line out.

It imports the product once and forks for every execution, because a fork costs milliseconds and an import seconds.

At the chosen point (`points.py`) the fork sends itself SIGKILL.
"""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def execute(job: Mapping[str, Any]) -> int:
    """In the fork: point standard output at the log, watch, run."""
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    from support.crash.points import Points, kill_at, watch

    watch(Points(Path(job["trace"]), kill_at(job.get("kill")), job["names"]))
    from support.crash.core import order_and_pay

    try:
        order_and_pay(job)
    except BaseException:  # noqa: BLE001 - the parent reads the log
        import traceback

        traceback.print_exc()
        return 1
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Import everything, then fork for every line."""
    os.nice(5)
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from support.runs.forking import shorten_pauses, warm_up

    shorten_pauses()
    warm_up("boto3", "eth_account")  # the second takes half a second
    _say("ready")
    for line in sys.stdin:
        job = json.loads(line)
        pid = os.fork()
        if pid == 0:
            sys.stdin.close()
            code = execute(job)
            sys.stdout.flush()
            os._exit(code)
        _, status = os.waitpid(pid, 0)
        _say(json.dumps({"code": os.waitstatus_to_exitcode(status)}))


if __name__ == "__main__":
    main()
