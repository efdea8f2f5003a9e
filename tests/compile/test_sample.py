"""Samples are generated helpers: what they say, what they are due for, and that views stay as they were."""

from __future__ import annotations

import random

import pytest

from partwise.compile.load import load_texts
from partwise.compile.many_parts.text import lift
from partwise.compile.program import Program
from partwise.compile.sample.hashing import _xxhash64, hash_of, threshold

SOURCE = """\
source: orders
part: 1 hour
time: at
columns: {at: timestamp, customer: string, region: string, amount: double, price: "decimal(10,2)"}
files: orders/*.csv
---
"""
PLAIN = """\
view: revenue
part: 1 hour
repair: manual
refresh: {every: 1 hour}
keep: 30 days
update: SELECT customer, SUM(amount) AS revenue, COUNT(*) AS n FROM orders[j] WHERE amount > 0 GROUP BY customer
"""


def program(text: str) -> Program:
    found = load_texts({"a.yaml": (SOURCE + text).encode()})
    assert found.ok, found.problems
    return found


def sampled(rule: str, text: str = PLAIN) -> Program:
    return program(text + f"sample: {rule}\n")


def test_without_sample_nothing_is_generated() -> None:
    assert program(PLAIN).helpers == {}


def test_the_view_itself_stays_as_it_was() -> None:
    before, after = program(PLAIN).graph()["revenue"], sampled("5 %").graph()["revenue"]
    assert before == after


def test_helpers_do_not_wait_for_the_view() -> None:
    graph = sampled("{outliers: {column: amount, keep: 20}}").graph()
    assert set(graph.tables) == {"orders", "revenue", "revenue__sizes", "revenue__sample", "revenue__was"}
    for name in ("revenue__sizes", "revenue__sample", "revenue__was"):
        assert (graph[name].helper_of, graph[name].repair, graph[name].refresh) == ("revenue", "automatic", None)
    assert graph["revenue__sample"].input_names == ("orders", "revenue__sizes")
    assert graph["revenue__was"].input_names == ("revenue",)
    assert graph["revenue"].input_names == ("orders",)
    # Nothing of the sample waits for the view, in runs and in Airflow; what is published follows it.
    assert graph.order == ("orders", "revenue__sizes", "revenue__sample", "revenue", "revenue__was")


def test_they_are_kept_as_long_as_the_view() -> None:
    helpers = sampled("5 %").helpers
    assert {helper.keep for helper in helpers.values()} == {30 * 86400}


def test_key_and_sizes_are_found_from_the_query() -> None:
    found = sampled("{outliers: {column: revenue, keep: 7}, exact: [ACME]}").views["revenue"].sampled
    assert found is not None
    assert found.key == (("customer", "string"),)
    assert found.unique
    assert found.sized == ("revenue", "n")
    assert (found.keep, found.exact, found.ratio) == (7, ("ACME",), 0.05)


def test_where_sizes_come_from_the_view_own_from_and_where() -> None:
    text = sampled("5 %").helpers["revenue__sizes"].update.text
    assert "FROM orders[j] WHERE amount > 0" in text
    assert "GROUP BY customer" not in text


@pytest.mark.parametrize(
    "update, sized",
    [
        ("SELECT customer, region, AVG(amount) AS a, MAX(price) b FROM orders[j] GROUP BY 1, 2", ("a", "b")),
        ("SELECT o.customer, o.amount FROM orders[j] o", ("amount",)),
        ("SELECT customer, SUM(amount) / 2 AS half FROM orders[j] GROUP BY customer", ()),
        ("SELECT customer, amount AS x, x + 1 AS y FROM orders[j]", ("x",)),
        ("SELECT customer, SUM(amount) OVER (PARTITION BY customer) AS s FROM orders[j]", ()),
        ("WITH w AS (SELECT * FROM orders[j]) SELECT customer, SUM(price) AS p FROM w GROUP BY customer", ("p",)),
        ("SELECT DISTINCT customer, price FROM orders[j]", ("price",)),
    ],
)
def test_which_columns_are_bounded(update: str, sized: tuple[str, ...]) -> None:
    view = f"view: v\npart: 1 hour\nsample: {{key: customer}}\nupdate: {update}\n"
    found = program(view).views["v"].sampled
    assert found is not None
    assert found.sized == sized


def test_a_union_can_be_sampled_without_sizes() -> None:
    update = "SELECT customer FROM orders[j] UNION SELECT customer FROM orders[j-1]"
    found = program(f"view: v\npart: 1 hour\nsample: 5 %\nupdate: {update}\n")
    assert set(found.helpers) == {"v__sample", "v__was"}


def test_a_window_is_sampled_from_its_inputs_however_it_is_kept() -> None:
    view = "view: w\npart: 1 hour\nsample: 5 %\nquery: SELECT customer, SUM(price) AS p FROM orders [WINDOW 4 hours] GROUP BY customer\n"
    found = program(view)
    assert found.graph()["w__sample"].input_names == ("orders",)
    for way in found.views["w"].alternatives:
        assert {"w__sample", "w__was"} <= {helper.name for helper in way.helpers}


def test_many_parts_are_computed_at_once() -> None:
    for helper in sampled("{outliers: {column: amount}}").helpers.values():
        assert lift(helper.update.text).inputs


def test_another_ratio_is_another_sample() -> None:
    one, other = sampled("5 %").graph(), sampled("10 %").graph()
    assert one["revenue__sample"].fingerprint != other["revenue__sample"].fingerprint
    assert one["revenue__sizes"].fingerprint == other["revenue__sizes"].fingerprint


def test_the_hash_is_xxhash64() -> None:
    assert _xxhash64(b"", 0) == 0xEF46DB3751D8E999
    assert _xxhash64(b"abc", 0) == 0x44BC2CF5AD770999
    assert _xxhash64(b"xxhash", 20141025) == 0xB559B98D844E0635


def test_samples_have_the_size_that_they_should_have_and_are_nested() -> None:
    hashes = [hash_of([f"customer {n}"]) for n in range(20_000)]
    for ratio in (0.01, 0.05, 0.5):
        share = sum(h <= threshold(ratio) for h in hashes) / len(hashes)
        assert share == pytest.approx(ratio, rel=0.15)
    assert threshold(0.01) < threshold(0.05) < threshold(0.5) == -1


def test_keys_that_look_alike_are_told_apart() -> None:
    nasty = [
        [None],
        [""],
        ["n"],
        ["v"],
        ["NULL"],
        ["1"],
        ["01"],
        ["1.0"],
        [" 1"],
        ["ä"],
        ["a\u0308"],
        [None, ""],
        ["", None],
    ]
    assert len({hash_of(key) for key in nasty}) == len(nasty)
    random.seed(1)
    assert hash_of(["x" * 100]) != hash_of(["x" * 101])
