"""Load of the machine and of the Prefect API while somebody clicks: processes that ask, and reckon in between.

As a program, with the API's address and the wanted load: asks and reckons until its standard input is closed, which the
end of the test's process does too, and then says what it was answered. It reckons only while the machine's load is
below the wanted one, so that the load is the same beside other work.
"""

import json
import os
import random
import select
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

# What a page asks all the time.
QUESTIONS = (
    ("/flow_runs/filter", {"limit": 20, "sort": "EXPECTED_START_TIME_DESC"}),
    ("/flow_runs/count", {"flow_runs": {"state": {"type": {"any_": ["PAUSED"]}}}}),
    ("/deployments/filter", {"limit": 20}),
    ("/task_runs/count", {}),
)
TURN_SECONDS = 0.2


@contextmanager
def loaded(api_url: str, load: int, answers: Counter[str]) -> Iterator[None]:
    """As many processes as the wanted load; what the API has answered them is counted at the end."""
    command = [sys.executable, __file__, api_url, str(load)]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(load)
    ]
    try:
        yield
    finally:
        for process in processes:
            output, _ = process.communicate(timeout=60)
            answers.update(json.loads(output))


def ask(api_url: str) -> str:
    """Ask one thing; the status, or what went wrong."""
    path, body = random.choice(QUESTIONS)
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(api_url + path, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            answer.read()
            return str(answer.status)
    except urllib.error.HTTPError as error:
        return str(error.code)
    except OSError as error:
        return repr(error)


def main(api_url: str, load: float) -> None:
    """Until standard input ends."""
    answers: Counter[str] = Counter()
    pause = 0.0
    while not select.select([sys.stdin], [], [], pause)[0]:
        answers[ask(api_url)] += 1
        pause = TURN_SECONDS if os.getloadavg()[0] > load else 0.0
        end = time.process_time() + TURN_SECONDS
        while not pause and time.process_time() < end:
            pass
    sys.stdout.write(json.dumps(answers))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
