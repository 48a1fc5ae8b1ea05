"""A stand-in for the HTTP interface of Hugging Face's hub, as far as `huggingface_hub` calls it to push a model.

Paths, fields and codes are those of huggingface_hub 2.4 (`hf_api.py`, `_commit_api.py`, `lfs.py`): create_repo, repo
info, refs, validate-yaml, preupload, LFS batch (basic transfer), commit, tag. It has no xet storage, which
`HF_HUB_DISABLE_XET=1` leaves out.
"""

import base64
import hashlib
import json
import re
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import yaml

LICENSES = ("apache-2.0", "mit", "cc-by-4.0", "other")


@dataclass
class Repository:
    """A repository: commits (each its files and message), and tags."""

    private: bool = True
    commits: list = field(default_factory=lambda: [({".gitattributes": b""}, "initial commit")])
    tags: dict = field(default_factory=dict)

    @property
    def files(self):
        return self.commits[-1][0]

    def sha(self, number=-1):
        number = range(len(self.commits))[number]
        return hashlib.sha1(f"commit {number}".encode()).hexdigest()


class Hub(ThreadingHTTPServer):
    """The server.

    Attributes:
        token: the only one it takes.
        repositories: by name; those of other owners than `owners` cannot be made.
        asked: method, path, whether the token came along, and body of every request.
        refuse: path pattern -> status and further headers that it is answered with.
    """

    daemon_threads = True

    def __init__(self, token, owners=("my-team",)):
        super().__init__(("127.0.0.1", 0), Handler)
        self.token, self.owners = token, owners
        self.repositories, self.stored, self.asked, self.refuse = {}, {}, [], {}
        self.before_commit = lambda: None
        self.address = f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self._answer("GET")

    def do_POST(self):
        self._answer("POST")

    def do_PUT(self):
        self._answer("PUT")

    def do_HEAD(self):
        self._answer("HEAD")

    def log_message(self, *_):
        pass

    def _body(self):
        if self.headers.get("Transfer-Encoding") == "chunked":
            parts = []
            while size := int(self.rfile.readline(), 16):
                parts.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(parts)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def _answer(self, method):
        hub, body = self.server, self._body()
        known = self.headers.get("Authorization") == f"Bearer {hub.token}"
        hub.asked.append((method, self.path, known, body))
        status, value, headers = self._route(method, self.path.partition("?")[0], body, known)
        text = json.dumps(value).encode()
        self.send_response(status)
        for name, header in {**headers, "Content-Type": "application/json", "Content-Length": str(len(text))}.items():
            self.send_header(name, header)
        self.end_headers()
        self.wfile.write(text)

    def _route(self, method, path, body, known):
        hub = self.server
        for pattern, (status, headers) in hub.refuse.items():
            if re.search(pattern, path):
                return status, {"error": headers.get("X-Error-Message", "")}, headers
        if path.startswith("/lfs/"):  # A signed address of the storage, without the token.
            hub.stored[path.rpartition("/")[2]] = body
            return 200, {}, {}
        if not known:
            return 401, {"error": "Invalid credentials in Authorization header"}, {}
        if path == "/api/validate-yaml":
            return self._validate(json.loads(body)["content"])
        if path == "/api/repos/create":
            return self._create(json.loads(body))
        found = re.fullmatch(r"/api/models/([\w.-]+/[\w.-]+)(?:/(\w+)(?:/(.+))?)?", path)
        batch = re.fullmatch(r"/([\w.-]+/[\w.-]+)\.git/info/lfs/objects/batch", path)
        name = (found or batch)[1]
        if name not in hub.repositories:
            return 404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"}
        if batch:
            return 200, {"transfer": "basic", "objects": [self._upload(one) for one in json.loads(body)["objects"]]}, {}
        return getattr(self, f"_{found[2] or 'info'}")(name, hub.repositories[name], found[3], body)

    def _validate(self, text):
        head = yaml.safe_load(text.split("---")[1])
        if head.get("license") not in LICENSES:
            message = f'"license" must be one of [{", ".join(LICENSES)}]'
            return 400, {"errors": [{"message": message}], "warnings": []}, {}
        return 200, {"errors": [], "warnings": []}, {}

    def _create(self, wanted):
        hub, name = self.server, f"{wanted['organization']}/{wanted['name']}"
        if wanted["organization"] not in hub.owners:
            return 403, {"error": "You don't have the rights to create a model under this namespace"}, {}
        if name in hub.repositories:
            return 409, {"error": "You already created this model repo", "url": f"{hub.address}/{name}"}, {}
        private = wanted.get("private", wanted.get("visibility") == "private")
        hub.repositories[name] = Repository(private=private)
        return 200, {"url": f"{hub.address}/{name}"}, {}

    def _info(self, name, repository, *_):
        siblings = [{"rfilename": file} for file in sorted(repository.files)]
        value = {"id": name, "sha": repository.sha(), "private": repository.private, "siblings": siblings, "tags": []}
        return 200, value, {}

    _revision = _info  # There is no other branch than main.

    def _refs(self, _name, repository, *_):
        branches = [{"name": "main", "ref": "refs/heads/main", "targetCommit": repository.sha()}]
        tags = [{"name": n, "ref": f"refs/tags/{n}", "targetCommit": c} for n, c in repository.tags.items()]
        return 200, {"branches": branches, "converts": [], "tags": tags}, {}

    def _preupload(self, _name, repository, _revision, body):
        files = []
        for file in json.loads(body)["files"]:
            large = b"\0" in base64.b64decode(file["sample"]) or file["size"] > 1 << 20
            there = repository.files.get(file["path"])
            oid = None if there is None else hashlib.sha256(there).hexdigest() if large else blob(there)
            mode = "lfs" if large else "regular"
            files.append({"path": file["path"], "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return 200, {"files": files}, {}

    def _upload(self, one):
        address = f"{self.server.address}/lfs/{one['oid']}"
        return {**one, "actions": {"upload": {"href": address, "header": {}}}}

    def _commit(self, name, repository, _revision, body):
        hub = self.server
        hub.before_commit()
        head, *operations = [json.loads(line) for line in body.splitlines()]
        if head["value"].get("parentCommit") not in (None, repository.sha()):
            return 412, {"error": "A commit has happened since. Please refresh and try again."}, {}
        files = dict(repository.files)
        for operation in operations:
            value = operation["value"]
            if operation["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif operation["key"] == "lfsFile":
                content = hub.stored[value["oid"]]
                assert (hashlib.sha256(content).hexdigest(), len(content)) == (value["oid"], value["size"])
                files[value["path"]] = content
            else:
                assert operation["key"] == "deletedFile"
                del files[value["path"]]
        repository.commits.append((files, head["value"]["summary"]))
        oid = repository.sha()
        return 200, {"success": True, "commitOid": oid, "commitUrl": f"{hub.address}/{name}/commit/{oid}"}, {}

    def _tag(self, _name, repository, revision, body):
        tag = json.loads(body)["tag"]
        if tag in repository.tags:
            return 409, {"error": "Tag reference exists already"}, {}
        repository.tags[tag] = revision
        return 200, {}, {}


def blob(content):
    """The id that git gives to a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


@contextmanager
def running_hub(token):
    """Runs a hub."""
    with Hub(token) as hub:
        thread = threading.Thread(target=hub.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield hub
        finally:
            hub.shutdown()
            thread.join()
