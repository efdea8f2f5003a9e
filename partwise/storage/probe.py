"""Whether a workspace's object store can hold its tables: looked at once, before the first work.

Without this, a missing key shows as a minute of silence, and a store without conditional writes as a lost commit.
"""

from __future__ import annotations

import uuid

from partwise import object_store
from partwise.object_store import Access
from partwise.storage.errors import StoreProblem
from partwise.storage.remote import Bucket

#: Objects of probes; what a killed one left behind is in nobody's way.
FOLDER = "_partwise_probe"


def no_key(to: Access) -> bool:
    """Whether nobody can give a key: off AWS there are no machines with roles, so it is useless to look for one."""
    return to.endpoint is not None and to.key is None and not to.roles


def probe(warehouse: str) -> None:
    """Write an object twice, conditionally; the second time must be refused. Raises StoreProblem with what is missing."""
    if not object_store.is_s3(warehouse):
        return
    if no_key(object_store.access_to(warehouse)):
        raise StoreProblem(
            f"{warehouse}: no access key was found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a profile "
            "(AWS_PROFILE)."
        )
    bucket, name = Bucket(warehouse), f"{FOLDER}/{uuid.uuid4().hex}"
    try:
        bucket.create(name, b"")
        again = bucket.create(name, b"")
    finally:
        bucket.remove(name)
    if again:
        raise StoreProblem(
            f"{warehouse}: this store ignores conditional writes (If-None-Match), so that two writers could overwrite each "
            "other's commits; use S3, MinIO or another store that supports them."
        )
