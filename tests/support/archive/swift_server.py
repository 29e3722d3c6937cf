"""A real S3 server on loopback: OpenStack Swift with its S3 interface, one replica, four small processes.

It checks signatures and checksums and honours conditional writes, which stand-ins do not all do. Its files
carry user extended attributes, so the folder must lie on a file system that has them (ext4, xfs, btrfs; tmpfs
only in recent kernels).
"""

import getpass
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import boto3
from botocore.config import Config

from prefect_assay.local.leash import leash

ACCESS_KEY = "lab:archivist"
SECRET_KEY = "loopback-only"
NEXT_ACCESS_KEY = "lab:successor"  # of the same account, for a rotation
NEXT_SECRET_KEY = "loopback-only-too"
START_SECONDS = 30.0
BACKENDS = ("account", "container", "object")

_SWIFT_CONF = "[swift-hash]\nswift_hash_path_suffix = tests\n"

_BACKEND_CONF = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
swift_dir = {root}
devices = {root}/devices
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
[pipeline:main]
pipeline = healthcheck {kind}-server
[filter:healthcheck]
use = egg:swift#healthcheck
[app:{kind}-server]
use = egg:swift#{kind}
"""

_PROXY_CONF = """
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
swift_dir = {root}
[pipeline:main]
pipeline = catch_errors gatekeeper healthcheck s3api tempauth bulk slo proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:gatekeeper]
use = egg:swift#gatekeeper
[filter:healthcheck]
use = egg:swift#healthcheck
[filter:s3api]
use = egg:swift#s3api
[filter:tempauth]
use = egg:swift#tempauth
{users}
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
[app:proxy-server]
use = egg:swift#proxy
allow_account_management = true
account_autocreate = true
"""


def reason_not_to_run(folder: Path) -> str | None:
    """Why Swift cannot run here, or None."""
    try:
        import swift.common.ring  # noqa: F401
    except ImportError as error:
        return f"the swift package is not usable: {error}"
    probe = folder / "xattr-probe"
    probe.touch()
    try:
        os.setxattr(probe, "user.swift.metadata", b"1" * 1024)
    except (OSError, AttributeError) as error:
        return f"{folder} has no user extended attributes ({error}); set TMPDIR to a folder on ext4 or xfs"
    finally:
        probe.unlink()
    return None


@contextmanager
def swift_server(root: Path) -> Iterator[str]:
    """Run the server with its files below `root`; yields its address. Ends its processes by id."""
    ports = dict(zip((*BACKENDS, "proxy"), _free_ports(4), strict=True))
    _configure(root, ports)
    with ExitStack() as stack:
        processes = {kind: stack.enter_context(_process(root, kind)) for kind in ports}
        for kind, port in ports.items():
            _wait_until_healthy(processes[kind], port, root / f"{kind}.log")
        yield f"http://127.0.0.1:{ports['proxy']}"


def s3_client(endpoint: str, *, secret: str = SECRET_KEY, access: str = ACCESS_KEY) -> Any:
    """A boto3 client for a server on loopback."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=access,
        aws_secret_access_key=secret,
        config=Config(
            s3={"addressing_style": "path"},
            connect_timeout=5,
            read_timeout=30,
            retries={"total_max_attempts": 2},
        ),
    )


def _configure(root: Path, ports: dict[str, int]) -> None:
    from swift.common.ring import RingBuilder

    (root / "devices" / "d1").mkdir(parents=True)
    (root / "swift.conf").write_text(_SWIFT_CONF)
    keys = ((ACCESS_KEY, SECRET_KEY), (NEXT_ACCESS_KEY, NEXT_SECRET_KEY))
    users = "\n".join(f"user_{access.replace(':', '_')} = {secret} .admin" for access, secret in keys)
    for kind, port in ports.items():
        template = _PROXY_CONF if kind == "proxy" else _BACKEND_CONF
        (root / f"{kind}.conf").write_text(
            template.format(kind=kind, port=port, root=root, user=getpass.getuser(), users=users)
        )
    for kind in BACKENDS:
        builder = RingBuilder(part_power=2, replicas=1, min_part_hours=0)
        builder.add_dev(
            {"region": 1, "zone": 1, "ip": "127.0.0.1", "port": ports[kind], "device": "d1", "weight": 1.0}
        )
        builder.rebalance(seed="tests")
        builder.get_ring().save(str(root / f"{kind}.ring.gz"))


@contextmanager
def _process(root: Path, kind: str) -> Iterator[subprocess.Popen[bytes]]:
    script = Path(sys.executable).with_name(f"swift-{kind}-server")
    with (root / f"{kind}.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, script, root / f"{kind}.conf"], stdout=log, stderr=log, stdin=subprocess.DEVNULL
        )
        leash.hold(process.pid)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=5)
            leash.release(process.pid)


def _wait_until_healthy(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        with suppress(URLError, OSError), urlopen(f"http://127.0.0.1:{port}/healthcheck", timeout=2):
            return
        time.sleep(0.1)
    raise RuntimeError(f"swift did not start on port {port}: {log.read_text()[-2000:]}")


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for bound in sockets:
            bound.bind(("127.0.0.1", 0))
        return [bound.getsockname()[1] for bound in sockets]
