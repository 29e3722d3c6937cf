"""The conformance suite of the Model Context Protocol against the lab's `/mcp` (`make conformance`).

The suite calls tools, resources and prompts of a server that was written for it, and the service has none of these. What
must fail for this reason is listed in `mcp-baseline.yaml`; the suite itself fails for any other failure, and for an entry
of the list that passes.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from assay_lab.testing import LocalLab
from support.conformance.token_proxy import token_proxy

# The last version that runs on Node 20.
SUITE = "@modelcontextprotocol/conformance@0.1.13"
BASELINE = Path(__file__).with_name("mcp-baseline.yaml")
HOLD = {"server-initialize": 1, "ping": 1, "tools-list": 1, "dns-rebinding-protection": 2}

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(600)]


def test_the_tool_endpoint_passes_what_applies(tmp_path):
    npx = shutil.which("npx")
    if npx is None:
        pytest.skip("the MCP suite needs Node (npx), which is not here")
    with LocalLab() as lab, token_proxy(lab.base_url, lab.token) as address:
        command = [npx, "--yes", SUITE, "server", "--url", f"{address}/mcp", "--suite", "all"]
        command += ["--expected-failures", str(BASELINE), "--output-dir", str(tmp_path)]
        done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    passed = dict(re.findall(r"✓ ([\w-]+): (\d+) passed, 0 failed", done.stdout))
    assert {name: int(passed.get(name, 0)) for name in HOLD} == HOLD
