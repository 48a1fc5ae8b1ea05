"""The parts of google-cloud-storage that are used and are not public."""

import http.server
import threading

import pytest
import requests
from compat import checked_with

storage = pytest.importorskip("google.cloud.storage")

from google.auth.credentials import AnonymousCredentials  # noqa: E402

from shardwright.storage.gcs_compat import convert_rows, keep_connections  # noqa: E402


def test_the_version_is_one_that_was_checked():
    checked_with("google-cloud-storage", ">=2.19,<3.18")


class Short(http.server.BaseHTTPRequestHandler):
    """Answers each request with fewer bytes than it states; notes the connections."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "10")
        self.end_headers()
        self.wfile.write(b"short")
        self.close_connection = True

    def log_message(self, *_):
        pass


@pytest.fixture
def client():
    return storage.Client(project="p", credentials=AnonymousCredentials())


def test_connections_are_kept_and_a_short_answer_is_an_error(client):
    keep_connections(client, 37)
    for scheme in ("https://", "http://"):
        assert client._http.get_adapter(f"{scheme}storage.googleapis.com")._pool_maxsize == 37
    server = http.server.HTTPServer(("127.0.0.1", 0), Short)
    threading.Thread(target=server.handle_request, daemon=True).start()
    try:
        with pytest.raises((requests.exceptions.ChunkedEncodingError, requests.exceptions.ConnectionError)):
            client._http.get(f"http://127.0.0.1:{server.server_port}/")
    finally:
        server.server_close()


def test_a_bucket_itself_is_not_asked_for(client, monkeypatch):
    """A release that has a cache of metadata fills it in a thread; where it has none, nothing may need one."""
    asked = []
    monkeypatch.setattr(storage.Bucket, "reload", lambda bucket, **_: asked.append(bucket.name))
    monkeypatch.setattr(client._connection, "api_request", lambda **_: asked.append("listing") or {"items": []})
    keep_connections(client, 1)
    before = set(threading.enumerate())
    assert list(client.list_blobs("bucket")) == []
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
    assert asked == ["listing"]


def test_rows_are_converted_as_they_were_sent(client, monkeypatch):
    rows = [{"name": "a", "size": "3"}, {"name": "b", "size": "5"}]
    monkeypatch.setattr(client._connection, "api_request", lambda **_: {"items": rows, "nextPageToken": "t"})
    listing = convert_rows(client.list_blobs("bucket"), dict)
    assert list(next(listing.pages)) == rows
    assert listing.next_page_token == "t"
