"""An HTTP service of prepared bytes: a list of experiments and one experiment; prints its port."""

import asyncio
import json
import sys
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit
from uuid import UUID

START = datetime(2026, 3, 2, 9, tzinfo=UTC)


def row(number):
    return {
        "id": str(UUID(int=number)),
        "code": f"LAB-001-{number:04}",
        "name": f"round-3 {number} of 2000 [c6b97784b89b67358316]",
        "status": "in_production",
        "created_at": (START - timedelta(minutes=number)).isoformat(),
        "results_status": "none",
        "experiment_type": "affinity",
        "experiment_url": f"https://lab.example.org/experiments/{number}",
        "provider_quote_url": f"https://pay.example.org/quotes/{number}",
        "provider_invoice_url": f"https://pay.example.org/invoices/{number}",
    }


def answer(body):
    content = json.dumps(body).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
    return head.encode() + content


def prepared(rows):
    one = rows[0] | {
        "experiment_spec": {
            "experiment_type": "affinity",
            "method": "bli",
            "target_id": str(UUID(int=7)),
            "sequences": {f"d{n}": {"aa_string": "MKTAYIAKQR" * 12} for n in range(24)},
        },
        "costs": {"total_cents": 43800},
    }
    return answer(one)


async def main(count):
    rows = [row(number) for number in range(count)]
    pages, single = {}, prepared(rows)

    def page(query):
        limit, offset = (
            int(query.get(name, [default])[0]) for name, default in (("limit", 100), ("offset", 0))
        )
        if (limit, offset) not in pages:
            part = rows[offset : offset + limit]
            pages[limit, offset] = answer(
                {"items": part, "total": count, "count": len(part), "offset": offset}
            )
        return pages[limit, offset]

    async def serve(reader, writer):
        while head := await reader.readuntil(b"\r\n\r\n"):
            url = urlsplit(head.split(b" ", 2)[1].decode())
            writer.write(page(parse_qs(url.query)) if url.path.endswith("/experiments") else single)

    async def guarded(reader, writer):
        try:
            await serve(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
