"""What `warehouse: s3://...` and `store: {endpoint: ...}` mean to everyone who talks to the store.

Three libraries do: Spark (Hadoop's S3A), delta-rs and obstore, pyarrow for queries. Each has its own names for the same
few facts; they are all derived here, from the settings and from the variables and files that AWS's own tools read.
Nothing is contacted and nothing of the libraries is imported: commands on a local folder pay nothing for this.
"""

from __future__ import annotations

from partwise.object_store.access import Access, AccessKey, access, access_to, remember
from partwise.object_store.libraries import (
    S3A_SETTING,
    arrow_options,
    client_options,
    delta_options,
    spark_path,
    spark_settings,
)
from partwise.object_store.sayings import explained, meaning
from partwise.object_store.urls import (
    SCHEME,
    Store,
    bucket_of,
    is_remote,
    is_s3,
    looks_like_a_key,
    wrong_endpoint,
    wrong_url,
)

__all__ = [
    "S3A_SETTING",
    "SCHEME",
    "Access",
    "AccessKey",
    "Store",
    "access",
    "access_to",
    "arrow_options",
    "bucket_of",
    "client_options",
    "delta_options",
    "explained",
    "is_remote",
    "is_s3",
    "looks_like_a_key",
    "meaning",
    "remember",
    "spark_path",
    "spark_settings",
    "wrong_endpoint",
    "wrong_url",
]
