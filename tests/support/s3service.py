# SPDX-License-Identifier: Apache-2.0
"""A small S3 server over a directory that can be written, and that supports conditions of writes as
a test says. Objects written through it have their metadata and are the only ones that have any.

    with Service(root, put_absent="ignored", put_match=501) as service:
        env = service.environment()

Each condition is "checked", "ignored", "fails" (also if it holds), or the status with which
requests that have it are refused: put_absent, put_match, delete_match. Uploads in parts are not
supported."""
import os
import threading

from s3liar import Answer, Liar, error, etag_of

PROBE = ".hsmount/probe-"


class Service(Liar):
    def __init__(self, root, put_absent="checked", put_match="checked", delete_match="ignored"):
        super().__init__(root)
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

    def put(self, request):
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
        return Answer(200, {"ETag": self.etag(request.key)})

    def delete(self, request):
        match, now = request.headers.get("if-match"), self.etag(request.key)
        refused = self.refusal("delete_match", match, match == now)
        if refused:
            return refused
        if now:
            os.unlink(os.path.join(self.root, request.key))
            self.metadata.pop(request.key, None)
        return Answer(204, {})
