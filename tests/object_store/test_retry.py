"""A store that cannot be reached says nothing about a part: the step is tried again, and people are told why."""

from __future__ import annotations

import pytest
from pyspark.errors.exceptions.base import PySparkException

from partwise.storage.errors import StoreProblem
from spark_jobs.retry import is_infrastructure, sentence_of

S3A = "org.apache.hadoop.fs.s3a.AWSBadRequestException: getFileStatus on s3a://lake/w/t/x.parquet: {0}"


@pytest.mark.parametrize(
    "said, words",
    [
        ("ExpiredToken: The provided token has expired", "s3://lake: the keys have expired; renew them"),
        ("AccessDenied (Status Code: 403)", "it needs to list, read, write and delete in the bucket lake"),
        ("(Service: S3, Status Code: 503)", "the store fails or is overloaded"),
    ],
)
def test_what_the_connector_says_is_told_in_our_words(said: str, words: str) -> None:
    why = PySparkException(S3A.format(said))
    assert is_infrastructure(why)
    assert words in sentence_of(why)


def test_a_query_may_say_anything() -> None:
    assert not is_infrastructure(PySparkException("[USER_RAISED_EXCEPTION] AccessDenied"))
    assert not is_infrastructure(PySparkException(S3A.format("the file has no footer")))


def test_our_own_client_counts_too() -> None:
    why = StoreProblem("s3://lake: the keys have expired.")
    assert is_infrastructure(why)
    assert sentence_of(why) == "s3://lake: the keys have expired."
