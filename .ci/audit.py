"""Look up the packages of requirements.lock in the OSV database of known vulnerabilities.

Prints each one, and ends with 1 if there is any. Where the database can't be reached, it says that it looked at no package.
`--warn` ends with 0 in any case: what CI says of a commit must not depend on today's advisories.
"""

import json
import re
import sys
import urllib.error
import urllib.request
from pathlib import Path

DATABASE = "https://api.osv.dev/v1/querybatch"
LOCK = Path(__file__).parents[1] / "requirements.lock"


def main() -> int:
    """Return the exit code."""
    pins = re.findall(r"^([a-z0-9._-]+)==([^ ;\\]+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    queries = [{"package": {"name": name, "ecosystem": "PyPI"}, "version": version} for name, version in pins]
    body = json.dumps({"queries": queries}).encode()
    request = urllib.request.Request(DATABASE, body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
            results = json.load(answer)["results"]
    except (urllib.error.URLError, TimeoutError) as error:
        print(f"dependency audit: not done, {DATABASE} can't be reached ({error})")
        return 0
    known = [
        f"{name} {version}: {', '.join(entry['id'] for entry in result['vulns'])}"
        for (name, version), result in zip(pins, results, strict=True)
        if result.get("vulns")
    ]
    print("\n".join([f"dependency audit: {len(known)} of {len(pins)} packages have advisories", *known]))
    return 1 if known and "--warn" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
