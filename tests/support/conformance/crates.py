"""Judge RO-Crates with `rocrate-validator`, in its own environment: `crates.py CONTEXT.jsonld FOLDER...`.

The validator fetches the context of RO-Crate 1.1 from the web. Here it gets the copy that the library `rocrate` ships, so
that it needs no network. Prints a JSON object: per folder the issues, each as check, severity and message.
"""

import io
import json
import sys
import urllib.request
from pathlib import Path

CONTEXT_URL = "https://w3id.org/ro/crate/1.1/context"


def _serve(context: bytes) -> None:
    from email.message import Message
    from urllib.response import addinfourl

    def opened(self, fullurl, *_args, **_named):
        url = fullurl if isinstance(fullurl, str) else fullurl.full_url
        if url != CONTEXT_URL:
            raise OSError(f"a crate must not need {url}")
        headers = Message()
        headers["Content-Type"] = "application/ld+json"
        return addinfourl(io.BytesIO(context), headers, url, 200)

    urllib.request.OpenerDirector.open = opened


def main() -> None:
    from rocrate_validator.models import Severity
    from rocrate_validator.services import validate

    context, *folders = sys.argv[1:]
    _serve(Path(context).read_bytes())
    issues = {}
    for folder in folders:
        result = validate(
            {
                "rocrate_uri": folder,
                "profile_identifier": "ro-crate-1.1",
                "requirement_severity": Severity.RECOMMENDED,
            }
        )
        issues[folder] = [
            [issue.check.identifier, issue.severity.name, issue.message] for issue in result.get_issues()
        ]
    sys.stdout.write(json.dumps(issues) + "\n")


if __name__ == "__main__":
    main()
