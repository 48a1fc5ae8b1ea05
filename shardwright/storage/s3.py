"""Amazon S3, and services with its protocol, through boto3.

Credentials and region come from boto3's default chain (environment, profiles, the machine's role); `AWS_ENDPOINT_URL`
leads it to another service or an emulator.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
import botocore.exceptions as errors
from botocore.config import Config

from shardwright.errors import CredentialsError, UsageError
from shardwright.storage.object_store import Changed, Missing, ObjectInfo, Transient, Unreadable

# Encryption that leaves the entity tag the MD5 of the bytes.
_PLAIN = (None, "AES256")
_MD5_TAG = re.compile(r'"[0-9a-f]{32}"')
_TIMEOUTS = {"connect_timeout": 10, "read_timeout": 60}
# Codes of requests that may succeed later without being changed, besides the 5xx.
_TRANSIENT = {"429", "RequestTimeout", "ConditionalRequestConflict", "Throttling", "ThrottlingException", "SlowDown"}
_NO_CREDENTIALS = {
    "InvalidAccessKeyId",
    "SignatureDoesNotMatch",
    "ExpiredToken",
    "InvalidToken",
    "TokenRefreshRequired",
}
_OTHER_REGION = {"PermanentRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "301"}
_LOST = (
    errors.HTTPClientError,  # timeouts and closed connections among them
    errors.IncompleteReadError,
    errors.FlexibleChecksumError,
    ConnectionError,
)
_UNKNOWN_USER = (
    errors.NoCredentialsError,
    errors.PartialCredentialsError,
    errors.CredentialRetrievalError,
    errors.ProfileNotFound,
    errors.TokenRetrievalError,
    errors.UnauthorizedSSOTokenError,
    errors.SSOTokenLoadError,
)


class S3Store:
    """A bucket of S3 or of a store with its API; an object's pin is its ETag.

    Args:
        bucket: name of the bucket.
        connections: concurrent readers.
    """

    def __init__(self, bucket: str, connections: int) -> None:
        self._bucket = bucket
        with self._errors("use"):
            self._client = _client(connections)

    def list_page(self, prefix: str, page: str | None, start: str = "") -> tuple[list[ObjectInfo], str | None]:
        """Lists objects that come after a name."""
        after = {"StartAfter": start} if start else {}
        more = after if page is None else {"ContinuationToken": page}
        with self._errors("list"):
            found = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix, **more)
        rows = ((row["Key"], row["Size"], row["ETag"], row["LastModified"]) for row in found.get("Contents", ()))
        infos = [ObjectInfo(name, size, tag, _checksum(tag), time.timestamp()) for name, size, tag, time in rows]
        return infos, found.get("NextContinuationToken")

    def names_page(self, prefix: str, page: str | None) -> tuple[list[str], str | None]:
        """Lists names up to the next slash."""
        more = {} if page is None else {"ContinuationToken": page}
        with self._errors("list"):
            found = self._client.list_objects_v2(Bucket=self._bucket, Prefix=prefix, Delimiter="/", **more)
        names = [row["Key"] for row in found.get("Contents", ())]
        return [*names, *(row["Prefix"] for row in found.get("CommonPrefixes", ()))], found.get("NextContinuationToken")

    def stat(self, name: str) -> ObjectInfo:
        """Reads an object's metadata."""
        with self._errors("read"):
            found = self._client.head_object(Bucket=self._bucket, Key=name)
        updated = found["LastModified"].timestamp()
        # The answer to a HEAD request shows the encryption.
        plain = found.get("ServerSideEncryption") in _PLAIN and "SSECustomerAlgorithm" not in found
        checksum = _checksum(found["ETag"]) if plain else ""
        return ObjectInfo(name, found["ContentLength"], found["ETag"], checksum, updated)

    def read(self, name: str, pin: str, start: int, stop: int | None) -> bytes:
        """Reads a version of an object; boto3 verifies length and checksum."""
        options = {"IfMatch": pin} if pin else {}
        if start or stop is not None:
            options["Range"] = f"bytes={start}-{'' if stop is None else stop - 1}"
        with self._errors("read"):
            try:
                data: bytes = self._client.get_object(Bucket=self._bucket, Key=name, **options)["Body"].read()
            except errors.ClientError as error:
                if error.response["Error"]["Code"] == "InvalidRange":
                    return b""
                raise
        return data

    def create(self, name: str, data: bytes) -> None:
        """Creates an object on the condition that there is none of that name (`If-None-Match`)."""
        with self._errors("write"):
            self._client.put_object(Bucket=self._bucket, Key=name, Body=data, IfNoneMatch="*")

    def upload(self, name: str, path: str) -> None:
        """Uploads a file, a large one in parts."""
        with self._errors("write"):
            self._client.upload_file(path, self._bucket, name)

    def copy(self, bucket: str, source: str, name: str) -> None:
        """Copies an object, a large one in parts."""
        with self._errors("write"):
            self._client.copy({"Bucket": bucket, "Key": source}, self._bucket, name)

    def delete(self, name: str) -> None:
        """Deletes an object; S3 reports success for a missing one, too."""
        with self._errors("delete"):
            self._client.delete_object(Bucket=self._bucket, Key=name)

    @contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        """Turns boto3's errors into those of `objects`."""
        try:
            yield
        except boto3.exceptions.S3UploadFailedError as error:
            # It wraps the error that it was raised from.
            with self._errors(verb):
                raise (error.__context__ or Transient(str(error))) from None
        except errors.ClientError as error:
            raise self._answered(error, verb) from error
        except _LOST as error:
            raise Transient(type(error).__name__) from error
        except _UNKNOWN_USER as error:
            raise self._no_credentials(str(error)) from None
        except (errors.NoRegionError, errors.InvalidRegionError) as error:
            raise self._wrong_region(str(error)) from None
        except errors.ParamValidationError as error:
            raise UsageError(f"s3://{self._bucket}: {' '.join(str(error).split())}") from None

    def _answered(self, error: Any, verb: str) -> Exception:
        code = str(error.response["Error"]["Code"])
        message = error.response["Error"].get("Message", "")
        status = int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 500))
        if status >= 500 or status == 429 or code in _TRANSIENT:
            return Transient(f"HTTP {status}, {code}")
        if code == "NoSuchBucket":
            return UsageError(f"s3://{self._bucket}: there is no such bucket. Check the name.")
        if status == 404:
            return Missing()
        if status == 412:
            return Changed()
        if code in _NO_CREDENTIALS or status == 401:
            return self._no_credentials(message)
        if code in _OTHER_REGION:
            return self._wrong_region(message)
        if status == 403 and code != "InvalidObjectState":
            return UsageError(
                f"s3://{self._bucket}: no permission to {verb} objects ({message or code}). Ask for s3:ListBucket and "
                "s3:GetObject on the bucket; for s3:PutObject and s3:DeleteObject too, to write."
            )
        return Unreadable(f"s3://{self._bucket}: {code}, {message}")

    def _no_credentials(self, problem: str) -> CredentialsError:
        return CredentialsError(
            f"s3://{self._bucket}: no valid AWS credentials ({problem.splitlines()[0] if problem else 'refused'}). Run "
            "`aws configure`, or set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )

    def _wrong_region(self, problem: str) -> UsageError:
        return UsageError(f"s3://{self._bucket}: is in another region ({problem}). Set AWS_DEFAULT_REGION.")


@functools.cache
def _client(connections: int) -> Any:
    """Returns one client for all buckets and threads, with as many connections as there are readers."""
    return boto3.session.Session().client(
        "s3", config=Config(max_pool_connections=connections, retries={"total_max_attempts": 1}, **_TIMEOUTS)
    )


def _checksum(tag: str) -> str:
    """Returns the checksum that an entity tag contains; the tag of an object that was uploaded in parts has none.

    The tag of an object that is encrypted with SSE-KMS or SSE-C looks the same, but is not the MD5 of its bytes.
    """
    return f"md5:{tag[1:-1]}" if _MD5_TAG.fullmatch(tag) else ""
