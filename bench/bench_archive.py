"""Uploads to the archive beside boto3's transfer manager, in turns, and the memory of a large upload.

    python bench/bench_archive.py [--megabytes 256] [--rounds 9] [--memory-megabytes 2048] [--swift]

The transfer manager has a client with default settings, the archive one with those of the S3Archive block. Both send the same random file to the same server on loopback: the sink of
`s3_sink.py`, once as it is and once with 30 ms added to each request, and with --swift the S3 server of the tests, too.
The archive's time includes what the transfer manager does not do: the condition and the SHA-256 of the whole file.
"""

import argparse
import contextlib
import hashlib
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import boto3
from botocore.config import Config
from figures import Ratio, report

from prefect_assay.archive.s3 import S3Store, client_config
from support.archive.swift_server import ACCESS_KEY, SECRET_KEY, swift_server

LATENCY = 0.03
TARGETS = {0.0: 0.95, LATENCY: 0.9}
MEMORY_TARGET = 100  # MB of the whole process, Python and boto3 included
BUCKET = "bench"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--megabytes", type=int, default=256)
    options.add_argument("--rounds", type=int, default=9)
    options.add_argument("--memory-megabytes", type=int, default=2048)
    options.add_argument("--swift", action="store_true", help="also against the real S3 server of the tests")
    options.add_argument("--upload-to", nargs=2, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.upload_to:
        upload_and_print_memory(*chosen.upload_to)
        return
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before")
    with tempfile.TemporaryDirectory(prefix="bench-archive-") as folder:
        source = random_file(Path(folder) / "source.bin", chosen.megabytes)
        for latency, target in TARGETS.items():
            with sink(Path(folder) / "sink", latency) as endpoint:
                medians = compare(endpoint, source, chosen.rounds, f"{latency * 1000:.0f} ms per request")
            report(
                Ratio(
                    "archive",
                    f"{chosen.megabytes} MB to S3, {latency * 1000:.0f} ms per request",
                    ours=medians["archive"],
                    beside="boto3's transfer manager, without condition and SHA-256",
                    other=medians["boto3"],
                    unit="s",
                    goal=target,
                    as_speed=True,
                )
            )
        if chosen.swift:
            compare_on_swift(Path(folder) / "swift", source, chosen.rounds)
        memory = memory_of_upload(Path(folder), chosen.memory_megabytes)
    report(
        Ratio(
            "archive",
            f"memory of a process that uploads {chosen.memory_megabytes} MB",
            ours=memory,
            beside="the limit for the whole process",
            other=MEMORY_TARGET,
            unit="MB",
            goal=1.0,
        )
    )
    print(f"load {os.getloadavg()[0]:.1f} after")


def compare(endpoint, source, rounds, what):
    """Median seconds of both, in turns."""
    client = client_of(endpoint)
    with contextlib.suppress(client.exceptions.ClientError):
        client.create_bucket(Bucket=BUCKET)
    with source.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    store = S3Store(BUCKET, client_of(endpoint, client_config(endpoint)))
    ways = {
        "boto3": lambda key: client.upload_file(str(source), BUCKET, key),
        "archive": lambda key: store.put_if_absent(key, source, "application/zip", sha256=digest),
    }
    taken = {name: [] for name in ways}
    for number in range(rounds + 1):
        for name, way in ways.items() if number % 2 else reversed(ways.items()):
            key = f"{name}-{number}"
            start = time.perf_counter()
            way(key)
            if number:  # the first round is not counted
                taken[name].append(time.perf_counter() - start)
            client.delete_object(Bucket=BUCKET, Key=key)
    medians = {name: statistics.median(values) for name, values in taken.items()}
    ratio = medians["boto3"] / medians["archive"]
    pairs = statistics.median(a / b for a, b in zip(taken["boto3"], taken["archive"], strict=True))
    speed = source.stat().st_size / 1e6
    for name, seconds in medians.items():
        print(f"{seconds:8.3f} s, {speed / seconds:5.0f} MB/s: {name}, {what}")
    print(f"{ratio:8.2f} of boto3's speed (median of pairs {pairs:.2f}), {what}", flush=True)
    return medians


def compare_on_swift(folder, source, rounds):
    folder.mkdir()
    os.environ |= {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}
    with swift_server(folder) as endpoint:
        compare(endpoint, source, rounds, "Swift")


def client_of(endpoint, config=None):
    keys = {
        "aws_access_key_id": os.environ.get("AWS_ACCESS_KEY_ID", "bench"),
        "aws_secret_access_key": os.environ.get("AWS_SECRET_ACCESS_KEY", "bench"),
    }
    return boto3.client(
        "s3", endpoint_url=endpoint, region_name="us-east-1", config=config or Config(), **keys
    )


def memory_of_upload(folder, megabytes):
    """MB of resident memory that a process needs at most, which uploads a file of this size."""
    source = random_file(folder / "large.bin", megabytes)
    with sink(folder / "sink", 0.0) as endpoint:
        command = [sys.executable, __file__, "--upload-to", endpoint, str(source)]
        return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def upload_and_print_memory(endpoint, source):
    S3Store(BUCKET, client_of(endpoint, client_config(endpoint))).put_if_absent(
        "large", Path(source), "application/zip"
    )
    # Not `ru_maxrss`: a process inherits the peak of the one that started it.
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    print(int(status["VmHWM"].split()[0]) * 1.024e-3)


@contextlib.contextmanager
def sink(folder, latency):
    """The sink in a process of its own; yields its address, and ends it by its id."""
    folder.mkdir(exist_ok=True)
    command = [sys.executable, Path(__file__).with_name("s3_sink.py"), folder, "--latency", str(latency)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.terminate()


def random_file(path, megabytes):
    """Random content: a server that packs or skips zeros would show another time."""
    block = os.urandom(1_000_000)
    with path.open("wb") as file:
        for number in range(megabytes):
            file.write(block[number:] + block[:number])
    return path


if __name__ == "__main__":
    main()
