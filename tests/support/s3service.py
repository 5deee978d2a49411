# SPDX-License-Identifier: Apache-2.0
"""A small S3 server over a directory that can be written, and that supports conditions of writes as
a test says. Objects written through it have their metadata and are the only ones that have any.

    with Service(root, put_absent="ignored", put_match=501) as service:
        env = service.environment()

Each condition is "checked", "ignored", "fails" (also if it holds), or the status with which
requests that have it are refused: put_absent, put_match, delete_match. Uploads in parts are not
supported.

`crc` says what the service does with the CRC-32C of a body: "checked", "ignored", "forgotten" (it
is checked for test objects only), or the status with which requests that have one are refused."""
import base64
import hashlib
import os
import threading

from s3liar import Answer, Liar, error, etag_of

PROBE = ".hsmount/probe-"
CRC = "x-amz-checksum-crc32c"


def crc_table():
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82f63b78 if byte & 1 else 0)
        table.append(byte)
    return table


CRC_TABLE = crc_table()


def crc32c(body):
    """As in the header."""
    crc = 0xffffffff
    for byte in body:
        crc = crc >> 8 ^ CRC_TABLE[(crc ^ byte) & 0xff]
    return base64.b64encode((crc ^ 0xffffffff).to_bytes(4, "big")).decode()


class Service(Liar):
    def __init__(self, root, put_absent="checked", put_match="checked", delete_match="ignored",
                 crc="ignored", tls=None):
        super().__init__(root, tls=tls)
        self.crc = crc
        self.conditions = {"put_absent": put_absent, "put_match": put_match,
                           "delete_match": delete_match}
        self.metadata, self.writing = {}, threading.Lock()

    def refusal(self, kind, wanted, holds):
        """The error of a request with a condition, or None. wanted: its value, None: it has
        none."""
        how = self.conditions[kind]
        if wanted is None or how == "ignored":
            return None
        if isinstance(how, int):
            return error(how, "NotImplemented")
        return None if holds and how == "checked" else error(412, "PreconditionFailed")

    def object(self, request):
        with self.writing:
            if request.method == "PUT":
                return self.put(request)
            if request.method == "DELETE":
                return self.delete(request)
            answer = super().object(request)
            if answer.status < 300:
                answer.headers.update(self.metadata.get(request.key, {}))
            return answer

    def etag(self, key):
        body = self.body(key)
        return None if body is None else f'"{etag_of(body)}"'

    def digest(self, request):
        """The error of a body that is not the one of the signature, or None; and the headers of
        the answer."""
        sent, signed = request.headers.get(CRC), request.headers.get("x-amz-content-sha256")
        if signed != "UNSIGNED-PAYLOAD" and signed != hashlib.sha256(request.body).hexdigest():
            return error(400, "XAmzContentSHA256Mismatch"), {}
        forgotten = self.crc == "forgotten" and PROBE not in request.key
        if sent is None or self.crc == "ignored" or forgotten:
            return None, {}
        if isinstance(self.crc, int):
            return error(self.crc, "NotImplemented"), {}
        if sent != crc32c(request.body):
            return error(400, "BadDigest"), {}
        return None, {CRC: sent}

    def put(self, request):
        wrong, digest = self.digest(request)
        if wrong:
            return wrong
        absent, match = (request.headers.get(h) for h in ("if-none-match", "if-match"))
        now = self.etag(request.key)
        refused = self.refusal("put_absent", absent, now is None) or \
            self.refusal("put_match", match, match == now)
        if refused:
            return refused
        path = os.path.join(self.root, request.key)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as f:
            f.write(request.body)
        self.metadata[request.key] = {k: v for k, v in request.headers.items()
                                      if k.startswith("x-amz-meta-")}
        return Answer(200, {"ETag": self.etag(request.key), **digest})

    def delete(self, request):
        match, now = request.headers.get("if-match"), self.etag(request.key)
        refused = self.refusal("delete_match", match, match == now)
        if refused:
            return refused
        if now:
            os.unlink(os.path.join(self.root, request.key))
            self.metadata.pop(request.key, None)
        return Answer(204, {})
