"""Becomes `sitecustomize` of a measured stack: its Prefect server writes a line for each request to $BENCH_REQUESTS."""

import importlib.abc
import importlib.util
import os
import sys
from pathlib import Path

MODULE = "prefect_assay.service.web_origin"  # the outermost layer of the server, the lab and the receiver


class _Counts(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):  # noqa: ARG002 - importlib calls it so
        if name != MODULE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def exec_module(module):
            run(module)
            _count(module.OwnPagesOnly)

        spec.loader.exec_module = exec_module
        return spec


def _count(middleware):
    real = middleware.__call__
    log = Path(os.environ["BENCH_REQUESTS"]).open("a", buffering=1)  # noqa: SIM115 - open as long as the process

    async def counted(self, scope, receive, send):
        if scope["type"] != "http":
            return await real(self, scope, receive, send)
        by_bench = any(name == b"x-bench" for name, _ in scope["headers"])
        statuses = []

        async def noted(message):
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        try:
            return await real(self, scope, receive, noted)
        finally:
            if not by_bench:
                log.write(f"{scope['method']} {scope['path']} {statuses[0] if statuses else 0}\n")

    middleware.__call__ = counted


if "BENCH_REQUESTS" in os.environ and "server" in sys.orig_argv:
    sys.meta_path.insert(0, _Counts())
