"""The parts of google-cloud-storage that are not public and that we use. Checked with releases 2.19 and 3.17.

`tests/shardwright/storage/test_gcs_compat.py` fails when a release changes them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import requests
from requests.adapters import HTTPAdapter


class _Adapter(HTTPAdapter):
    """Keeps as many connections open as there are readers, and refuses an answer shorter than its stated length.

    With the ten connections of `requests`, most of the readers' would be closed and made again for each object.
    """

    def build_response(self, req: requests.PreparedRequest, resp: Any) -> requests.Response:
        resp.enforce_content_length = True  # The default of urllib3 2; before, a truncated body passed.
        return super().build_response(req, resp)


def keep_connections(client: Any, connections: int) -> None:
    """Lets a client keep `connections` connections open, check the length of each answer, and ask for nothing else.

    Args:
        client: a `google.cloud.storage.Client`; its session is not public.
        connections: how many.
    """
    # Else releases from 3.17 on ask for each bucket's metadata in another thread, which needs one more permission.
    client._bucket_metadata_cache = None
    adapter = _Adapter(pool_maxsize=connections)
    for scheme in ("https://", "http://"):
        client._http.mount(scheme, adapter)


def convert_rows(listing: Any, convert: Callable[[Mapping[str, str]], Any]) -> Any:
    """Returns a listing whose rows are made by `convert`, which takes each as the JSON API sends it.

    Making an object of the client for each row takes ten times as long.

    Args:
        listing: from the client's `list_blobs`, before its first page.
        convert: takes a row.
    """
    listing.item_to_value = lambda _, item: convert(item)
    return listing
