"""For all tests: the long ones first, so that both test processes are busy until the end; certificates read once.

And the S3 servers, each started at most once per test process: a real one costs five seconds.
"""

import functools
import os
import signal
import ssl
import time
from collections import Counter

import pytest
from hypothesis import settings

# Where the time is short, as in CI: the file to begin with, and the Unix time after which no test is begun.
FIRST = int(os.environ.get("ASSAY_TESTS_FIRST", "0"))
END = float(os.environ.get("ASSAY_TESTS_END", "inf"))
NO_TIME = "no time was left for it (ASSAY_TESTS_END)"

# Prefect and httpx read the certificates again for each client, 40 to 50 ms, also where an address is plain HTTP.
ssl.create_default_context = functools.cache(ssl.create_default_context)

# A shell starts what it does not wait for without Ctrl-C, and every process of a test would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Its limit of 200 ms an example is one of the wall clock, which a busy machine passes.
settings.register_profile("prefect-assay", deadline=None)
settings.load_profile("prefect-assay")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items):
    """End-to-end files first, in the order of their names; everything else as it was. All of it from file `FIRST` on."""
    items.sort(key=lambda item: not {"e2e", "stories"}.intersection(item.path.parts))
    files = list(dict.fromkeys(item.path for item in items))
    place = {path: (number - FIRST) % len(files) for number, path in enumerate(files)}
    items.sort(key=lambda item: place[item.path])


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    if time.time() > END:
        pytest.skip(NO_TIME)


def pytest_terminal_summary(terminalreporter):
    """Name the files that were left out; the summary of skipped tests only counts them."""
    skipped = terminalreporter.stats.get("skipped", ())
    left_out = Counter(
        report.nodeid.partition("::")[0] for report in skipped if NO_TIME in str(report.longrepr)
    )
    if left_out:
        terminalreporter.section("left out, since the time was up")
        for path, count in sorted(left_out.items()):
            terminalreporter.write_line(f"{path}: {count}")


@pytest.fixture(scope="session")
def moto_endpoint():
    """A quick S3 stand-in; each test makes a bucket of its own."""
    from support.archive.moto_s3 import moto_server

    with moto_server() as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def swift_endpoint(bare_swift_endpoint):
    """A real S3 server behind a front that passes one upload at a time; each test makes a bucket of its own."""
    from support.archive.s3_proxy import s3_proxy

    with s3_proxy(bare_swift_endpoint, one_upload_at_a_time=True) as proxy:
        yield proxy.address


@pytest.fixture(scope="session")
def bare_swift_endpoint(tmp_path_factory):
    """A real S3 server which looks first and writes then, so that the probe refuses it."""
    from support.archive.swift_server import reason_not_to_run, swift_server

    folder = tmp_path_factory.mktemp("swift")
    if reason := reason_not_to_run(folder):
        pytest.skip(reason)
    with swift_server(folder) as endpoint:
        yield endpoint
