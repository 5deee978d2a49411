# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy in front of one S3 server that delays and damages answers. Faults are data:

    {"what": "status", "value": 503, "every": 10}

what     status (value: the status; with an S3 error document), error200 (an error document with
         status 200), drop (the connection is reset before the request reaches the server), lose
         (after it: the answer is lost), reset (within the body), cut (within the body, cleanly),
         stall (no answer for value seconds), slow (value seconds within the body), flip (one byte
         of the body), delay (value seconds, nothing else)
when     every: n-th, first: n, percent: of the requests that match
match    method, path (a substring of the target), whole (no range is asked for), all optional;
         there is no error200 to a HEAD, whose answer has no body

The proxy runs in a thread of its own: Proxy(endpoint, faults) as a context manager. `requests` is
what came: (method, target, fault or None)."""
import asyncio
import random
import socket
import struct
import threading
import urllib.parse

ERROR = ('<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>injected</Message>'
         "<RequestId>fault-1</RequestId></Error>")
CODES = {429: "SlowDown", 500: "InternalError", 502: "BadGateway", 503: "SlowDown",
         504: "GatewayTimeout"}


class Message:
    """A request or an answer: first line and headers as they came, and the body."""

    def __init__(self, head, body):
        self.head, self.body = head, body
        self.first = head.split(b"\r\n", 1)[0].decode("latin-1")

    def header(self, name):
        for line in self.head.split(b"\r\n")[1:]:
            if line.lower().startswith(name + b":"):
                return line.split(b":", 1)[1].strip()
        return None


async def read_message(reader, bodyless=False):
    head = await reader.readuntil(b"\r\n\r\n")
    message = Message(head, b"")
    if bodyless or b" 304 " in head[:20] or b" 204 " in head[:20]:
        return message
    if message.header(b"transfer-encoding") == b"chunked":
        while True:
            line = await reader.readuntil(b"\r\n")
            data = await reader.readexactly(int(line.split(b";")[0], 16) + 2)
            message.body += line + data
            if len(data) == 2:
                return message
    message.body = await reader.readexactly(int(message.header(b"content-length") or 0))
    return message


class Proxy:
    def __init__(self, endpoint, faults=()):
        parts = urllib.parse.urlsplit(endpoint)
        self.server = (parts.hostname, parts.port)
        self.faults = list(faults)
        self.seen = [0] * len(self.faults)
        self.requests = []
        self.connections = 0
        self.random = random.Random(1)
        self.started = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self.run()), daemon=True)

    def __enter__(self):
        self.thread.start()
        assert self.started.wait(10)
        return self

    def __exit__(self, *_):
        self.loop.call_soon_threadsafe(self.stopped.set)
        self.thread.join(10)

    @property
    def endpoint(self):
        return f"http://127.0.0.1:{self.port}"

    def set(self, *faults):
        """From now on these."""
        self.faults, self.seen = list(faults), [0] * len(faults)

    def count(self, fault):
        return sum(1 for r in self.requests if r[2] == fault)

    async def run(self):
        self.loop = asyncio.get_running_loop()
        self.stopped = asyncio.Event()
        listener = await asyncio.start_server(self.serve, "127.0.0.1", 0, limit=1 << 20)
        self.port = listener.sockets[0].getsockname()[1]
        self.started.set()
        await self.stopped.wait()
        listener.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def choose(self, method, target, ranged):
        for i, fault in enumerate(self.faults):
            if fault.get("method", method) != method or fault.get("path", "") not in target:
                continue
            if (fault.get("whole") and ranged) or (fault["what"], method) == ("error200", "HEAD"):
                continue
            self.seen[i] += 1
            if self.seen[i] <= fault.get("first", 0) or (
                    "every" in fault and self.seen[i] % fault["every"] == 0) or (
                    self.random.random() * 100 < fault.get("percent", 0)):
                return fault
        return None

    async def serve(self, reader, writer):
        self.connections += 1
        upstream = None
        try:
            while True:
                request = await read_message(reader)
                method, target, _ = request.first.split(" ", 2)
                fault = self.choose(method, target, request.header(b"range"))
                self.requests.append((method, target, fault and fault["what"]))
                if upstream is None:
                    upstream = await asyncio.open_connection(*self.server, limit=1 << 20)
                if not await self.answer(request, method, fault, upstream, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            for w in (writer, upstream and upstream[1]):
                if w:
                    w.close()

    async def answer(self, request, method, fault, upstream, writer):
        """True when the connection goes on."""
        what, value = (fault["what"], fault.get("value")) if fault else (None, None)
        if what == "drop":
            return self.reset(writer)
        if what in ("status", "error200"):
            return await self.refuse(200 if what == "error200" else value, method, writer)
        if what in ("delay", "stall"):
            await asyncio.sleep(value)
        upstream[1].write(request.head + request.body)
        # The gateway has Nagle's algorithm on; its delays are not ours to add.
        upstream[1].get_extra_info("socket").setsockopt(
            socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        answer = await read_message(upstream[0], method == "HEAD")
        if what == "lose":
            return self.reset(writer)
        body, half = answer.body, len(answer.body) // 2
        if what == "flip" and body and answer.header(b"transfer-encoding") is None:
            body = body[:half] + bytes([body[half] ^ 0x40]) + body[half + 1:]
        if what in ("reset", "cut", "slow") and body:
            writer.write(answer.head + body[:half])
            await writer.drain()
            if what == "slow":
                await asyncio.sleep(value)
                body = body[half:]
            else:
                await asyncio.sleep(0.01)
                return self.reset(writer) if what == "reset" else False
            writer.write(body)
        else:
            writer.write(answer.head + body)
        await writer.drain()
        return answer.header(b"connection") != b"close"

    def reset(self, writer):
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        return False

    async def refuse(self, status, method, writer):
        body = (ERROR % CODES.get(status, "InternalError")).encode()
        head = (f"HTTP/1.1 {status} Injected\r\nContent-Type: application/xml\r\n"
                f"x-amz-request-id: fault-1\r\nContent-Length: {len(body)}\r\n\r\n").encode()
        writer.write(head + (b"" if method == "HEAD" else body))
        await writer.drain()
        return True
