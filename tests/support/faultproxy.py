# SPDX-License-Identifier: Apache-2.0
"""An HTTP proxy in front of one S3 server that delays and damages answers. Faults are data:

    {"what": "status", "value": 503, "every": 10}

what     status (value: the status; with an S3 error document; code: its code; header: more headers,
         in which {target} is the request's), error200 (an error document with status 200), drop
         (the connection is reset before the request reaches the server), lose (after it: the
         answer is lost), reset (within the body), cut (within the body, cleanly), stall (no answer
         for value seconds), slow (value seconds within the body), flip (one byte of the body),
         delay (value seconds, nothing else)
when     every: each n-th, first: the first n, percent of the matching requests; burst: (n, of), the
         last n of each `of`
match    method, path (a substring of the target), whole (the request has no range), object (not a
         listing), unless (a text that is not in the request's header), with (one that is), all
         optional; there is no error200 to a HEAD, whose answer has no body, and no fault of a HEAD
         of the bucket, by which a mount opens a connection, unless `all` is set

Proxy(endpoint, faults) is a context manager and runs in another thread. `requests` contains all
requests. Between leave() and come_back() the server is unavailable."""
import asyncio
import collections
import random
import socket
import struct
import threading
import urllib.parse

ERROR = ('<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>injected</Message>'
         "<RequestId>fault-1</RequestId></Error>")
CODES = {301: "PermanentRedirect", 307: "TemporaryRedirect", 429: "SlowDown", 500: "InternalError",
         502: "BadGateway", 503: "SlowDown", 504: "GatewayTimeout"}


class Message:
    """A request or an answer: first line and headers as received, and the body."""

    def __init__(self, head, body):
        self.head, self.body = head, body
        self.first = head.split(b"\r\n", 1)[0].decode("latin-1")

    def header(self, name):
        for line in self.head.split(b"\r\n")[1:]:
            if line.lower().startswith(name + b":"):
                return line.split(b":", 1)[1].strip()
        return None


class Request(collections.namedtuple("Request", "method target fault head")):
    """fault: the injected fault or None; head: first line and headers as received."""

    @property
    def headers(self):
        lines = (line.split(":", 1) for line in self.head.split("\r\n")[1:] if ":" in line)
        return {name.lower(): value.strip() for name, value in lines}

    @property
    def only_connects(self):
        return only_connects(self.method, self.target)


def only_connects(method, target):
    """A HEAD of the bucket: the mount opens a connection before it needs it."""
    return method == "HEAD" and "/" not in target.strip("/")


class Exchange:
    """A request that is being served."""

    def __init__(self, request, method, target, fault, number):
        self.request, self.method, self.target = request, method, target
        self.fault, self.number = fault or {}, number
        self.what, self.value = self.fault.get("what"), self.fault.get("value")


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


def matches(fault, request, method, target):
    return (fault.get("method", method) == method and fault.get("path", "") in target and
            not (fault.get("whole") and request.header(b"range")) and
            not (fault.get("object") and "list-type=" in target) and
            (fault["what"], method) != ("error200", "HEAD") and
            (fault.get("all") or not only_connects(method, target)) and
            ("unless" not in fault or fault["unless"].encode() not in request.head) and
            fault.get("with", "").encode() in request.head.lower())


class Silent:
    """A server that never answers. With accepts=False it does not accept connections either."""

    def __init__(self, accepts=True):
        self.accepts = accepts

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64 if self.accepts else 0)
        self.endpoint = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.fillers = []
        for _ in range(0 if self.accepts else 4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(self.listener.getsockname())
            self.fillers.append(filler)
        return self

    def __exit__(self, *_):
        for s in [self.listener, *self.fillers]:
            s.close()


class Proxy:
    def __init__(self, endpoint, faults=()):
        parts = urllib.parse.urlsplit(endpoint)
        self.server = (parts.hostname, parts.port)
        self.faults = list(faults)
        self.seen = [0] * len(self.faults)
        self.requests = []
        self.connections = 0
        self.serving = 0                # requests that are not answered yet
        self.clients = {}               # open connections: their readers and writers
        self.port = 0
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

    @property
    def open_connections(self):
        """The number of connections that the client has not closed."""
        return sum(1 for reader, _ in list(self.clients.values()) if not reader.at_eof())

    def set(self, *faults):
        """Sets the faults."""
        self.faults, self.seen = list(faults), [0] * len(faults)

    def count(self, fault):
        return sum(1 for r in self.requests if r.fault == fault)

    def leave(self):
        """Stops listening, and resets all connections."""
        asyncio.run_coroutine_threadsafe(self.close(), self.loop).result(10)

    def come_back(self):
        asyncio.run_coroutine_threadsafe(self.listen(), self.loop).result(10)

    async def listen(self):
        self.listener = await asyncio.start_server(self.serve, "127.0.0.1", self.port,
                                                   limit=1 << 20)
        self.port = self.listener.sockets[0].getsockname()[1]

    async def close(self):
        self.listener.close()
        for _, writer in list(self.clients.values()):
            self.reset(writer)

    async def run(self):
        self.loop = asyncio.get_running_loop()
        self.stopped = asyncio.Event()
        await self.listen()
        self.started.set()
        await self.stopped.wait()
        self.listener.close()
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()

    def chance(self, i, fault):
        self.seen[i] += 1
        seen = self.seen[i]
        n, of = fault.get("burst", (0, 1))
        return (seen <= fault.get("first", 0) or
                ("every" in fault and seen % fault["every"] == 0) or
                (seen - 1) % of >= of - n or
                self.random.random() * 100 < fault.get("percent", 0))

    def choose(self, request, method, target):
        for i, fault in enumerate(self.faults):
            if matches(fault, request, method, target) and self.chance(i, fault):
                return fault
        return None

    async def serve(self, reader, writer):
        self.connections += 1
        self.clients[id(writer)] = reader, writer
        upstream = None
        try:
            while True:
                request = await read_message(reader)
                method, target, _ = request.first.split(" ", 2)
                fault = self.choose(request, method, target)
                self.requests.append(Request(method, target, fault and fault["what"],
                                             request.head.decode("latin-1")))
                exchange = Exchange(request, method, target, fault, len(self.requests) - 1)
                if upstream is None:
                    upstream = await asyncio.open_connection(*self.server, limit=1 << 20)
                self.serving += 1
                try:
                    if not await self.answer(exchange, upstream, writer):
                        break
                finally:
                    self.serving -= 1
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            del self.clients[id(writer)]
            for w in (writer, upstream and upstream[1]):
                if w:
                    w.close()

    async def answer(self, exchange, upstream, writer):
        """Returns True if the connection stays open."""
        what = exchange.what
        if what == "drop":
            return self.reset(writer)
        if what in ("status", "error200"):
            return await self.refuse(exchange, writer)
        if what in ("delay", "stall"):
            await asyncio.sleep(exchange.value)
        upstream[1].write(exchange.request.head + exchange.request.body)
        # Avoids the delays of Nagle's algorithm, which the gateway uses.
        upstream[1].get_extra_info("socket").setsockopt(
            socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
        answer = await read_message(upstream[0], exchange.method == "HEAD")
        if what == "lose":
            return self.reset(writer)
        if what in ("reset", "cut", "slow", "flip"):
            if not await self.spoil(exchange, answer, writer):
                return False
        else:
            writer.write(answer.head + answer.body)
        await writer.drain()
        return answer.header(b"connection") != b"close"

    async def spoil(self, exchange, answer, writer):
        """Writes an answer, with the fault of its body."""
        what, body, half = exchange.what, answer.body, len(answer.body) // 2
        if not body or (what == "flip" and (b" 20" not in answer.head[:12] or
                                            answer.header(b"transfer-encoding"))):
            done = self.requests[exchange.number]
            self.requests[exchange.number] = done._replace(fault=None)
            writer.write(answer.head + body)
            return True
        if what == "flip":
            body = body[:half] + bytes([body[half] ^ 0x40]) + body[half + 1:]
        writer.write(answer.head + body[:half])
        await writer.drain()
        if what in ("reset", "cut"):
            await asyncio.sleep(0.01)
            return self.reset(writer) if what == "reset" else False
        await asyncio.sleep(exchange.value if what == "slow" else 0)
        writer.write(body[half:])
        return True

    def reset(self, writer):
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        return False

    async def refuse(self, exchange, writer):
        status = 200 if exchange.what == "error200" else exchange.value
        fault = exchange.fault
        body = (ERROR % fault.get("code", CODES.get(status, "InternalError"))).encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in fault.get("header", {}).items())
        head = (f"HTTP/1.1 {status} Injected\r\nContent-Type: application/xml\r\n"
                f"{more.replace('{target}', exchange.target)}"
                f"x-amz-request-id: fault-1\r\nContent-Length: {len(body)}\r\n\r\n").encode()
        writer.write(head + (b"" if exchange.method == "HEAD" else body))
        await writer.drain()
        return True
