"""What stores and libraries say when something goes wrong, and what it means."""

from __future__ import annotations

from partwise.object_store.access import Access, access_to
from partwise.object_store.urls import bucket_of

#: What stores and libraries say, and what it means. The first that is found counts.
_SAYINGS: tuple[tuple[tuple[str, ...], str], ...] = (
    (
        ("ExpiredToken", "ExpiredTokenException", "token included in the request is expired", "RequestExpired"),
        "the keys have expired; renew them (the profile is read again by itself, variables need a new start)",
    ),
    (("InvalidAccessKeyId", "InvalidClientTokenId"), "the store does not know the access key{key}"),
    (("SignatureDoesNotMatch",), "the secret key is not the one of the access key{key}"),
    (
        ("NoSuchBucket", "BucketNotFound", "specified bucket does not exist"),
        "there is no bucket {bucket}; make it first",
    ),
    (
        (
            "AccessDenied",
            "Access Denied",
            "403 Forbidden",
            "Status Code: 403",
            "lacked sufficient permissions",
            "lack the necessary",
        ),
        "the key{key} may not do that; it needs to list, read, write and delete in the bucket {bucket}",
    ),
    (
        ("169.254.169.254", "Unable to load credentials", "NoAuthWithAWSException", "No AWS Credentials"),
        "no access key was found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile (AWS_PROFILE)",
    ),
    (
        ("Class org.apache.hadoop.fs.s3a.S3AFileSystem not found", 'No FileSystem for scheme "s3'),
        "Spark has no connector for object stores; `make setup OBJECT_STORE=1` fetches its jars",
    ),
    (
        (
            "Connection refused",
            "error trying to connect",
            "dns error",
            "UnknownHost",
            "Connect to ",
            "error sending request",
            "operation timed out",
            "Connection reset",
            "ConnectTimeout",
            "curlCode: 7",
        ),
        "the store does not answer{endpoint}; check store.endpoint and the network",
    ),
    (
        ("PermanentRedirect", "AuthorizationHeaderMalformed", "301 Moved"),
        "the bucket {bucket} is in another region; set store.region or AWS_REGION",
    ),
    (
        (
            "500 Internal",
            "503 Service",
            "502 Bad",
            "504 Gateway",
            "SlowDown",
            "InternalError",
            "ServiceUnavailable",
            "Status Code: 50",
        ),
        "the store fails or is overloaded; what was being done is tried again",
    ),
)


def meaning(text: str) -> str | None:
    """What an error text of a store says, with places for names; None if it is not about a store."""
    return next((said for words, said in _SAYINGS if any(word in text for word in words)), None)


def explained(url: str, text: str, to: Access | None = None) -> str:
    """One sentence about what went wrong at a URL."""
    to = to or access_to(url)
    first = next((line.strip(" \u21b3") for line in text.splitlines() if line.strip()), "it gave no reason")
    names = {
        "key": f" {to.key.id} (from {to.key.origin})" if to.key else "",
        "bucket": bucket_of(url),
        "endpoint": f" at {to.endpoint}" if to.endpoint else "",
    }
    said = first[:300] if (known := meaning(text)) is None else known.format(**names)
    return f"{url}: {said}."
