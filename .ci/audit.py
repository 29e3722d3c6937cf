"""Look up the packages of requirements.lock in the OSV database of known vulnerabilities.

Prints each one, and ends with 1 if there is any. Where the database can't be reached, it says that it looked at no package.
`--warn` ends with 0 in any case: what CI says of a commit must not depend on today's advisories.
"""

import re
import sys
from pathlib import Path

import httpx

DATABASE = "https://api.osv.dev/v1/querybatch"
LOCK = Path(__file__).parents[1] / "requirements.lock"


def main() -> int:
    """Return the exit code."""
    pins = re.findall(r"^([a-z0-9._-]+)==([^ ;\\]+)", LOCK.read_text(encoding="utf-8"), re.MULTILINE)
    queries = [{"package": {"name": name, "ecosystem": "PyPI"}, "version": version} for name, version in pins]
    try:
        answer = httpx.post(DATABASE, json={"queries": queries}, timeout=20).raise_for_status()
    except httpx.HTTPError as error:
        print(f"dependency audit: not done, {DATABASE} can't be reached ({error})")
        return 0
    results = answer.json()["results"]
    known = [
        f"{name} {version}: {', '.join(entry['id'] for entry in result['vulns'])}"
        for (name, version), result in zip(pins, results, strict=True)
        if result.get("vulns")
    ]
    print("\n".join([f"dependency audit: {len(known)} of {len(pins)} packages have advisories", *known]))
    return 1 if known and "--warn" not in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
