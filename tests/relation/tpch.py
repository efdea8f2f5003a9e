"""TPC-H as views: orders and line items have parts, the other tables are dimensions. Parameters as in the specification."""

from __future__ import annotations

from partwise.relation import Known

_D = "decimal(15,2)"
TABLES = {
    "lineitem": Known(
        {
            "l_orderkey": "bigint", "l_partkey": "bigint", "l_suppkey": "bigint", "l_linenumber": "int", "l_quantity": _D,
            "l_extendedprice": _D, "l_discount": _D, "l_tax": _D, "l_returnflag": "string", "l_linestatus": "string",
            "l_shipdate": "date", "l_commitdate": "date", "l_receiptdate": "date", "l_shipinstruct": "string",
            "l_shipmode": "string",
        },
        ("l_orderkey", "l_linenumber"),
    ),
    "orders": Known(
        {
            "o_orderkey": "bigint", "o_custkey": "bigint", "o_orderstatus": "string", "o_totalprice": _D,
            "o_orderdate": "date", "o_orderpriority": "string", "o_shippriority": "int", "o_comment": "string",
        },
        ("o_orderkey",),
    ),
    "customer": Known(
        {
            "c_custkey": "bigint", "c_name": "string", "c_address": "string", "c_nationkey": "bigint", "c_phone": "string",
            "c_acctbal": _D, "c_mktsegment": "string", "c_comment": "string",
        },
        ("c_custkey",),
    ),
    "parts_sold": Known(
        {
            "p_partkey": "bigint", "p_name": "string", "p_mfgr": "string", "p_brand": "string", "p_type": "string",
            "p_size": "int", "p_container": "string",
        },
        ("p_partkey",),
    ),
    "supplier": Known(
        {
            "s_suppkey": "bigint", "s_name": "string", "s_address": "string", "s_nationkey": "bigint", "s_phone": "string",
            "s_acctbal": _D, "s_comment": "string",
        },
        ("s_suppkey",),
    ),
    "partsupp": Known(
        {"ps_partkey": "bigint", "ps_suppkey": "bigint", "ps_availqty": "int", "ps_supplycost": _D},
        ("ps_partkey", "ps_suppkey"),
    ),
    "nation": Known({"n_nationkey": "bigint", "n_name": "string", "n_regionkey": "bigint"}, ("n_nationkey",)),
    "region": Known({"r_regionkey": "bigint", "r_name": "string"}, ("r_regionkey",)),
}  # fmt: skip

QUERIES = {
    1: """SELECT l_returnflag, l_linestatus, SUM(l_quantity) AS sum_qty, SUM(l_extendedprice) AS sum_base_price,
      AVG(l_quantity) AS avg_qty, COUNT(*) AS count_order
    FROM lineitem[j] WHERE l_shipdate <= DATE '1998-09-02' GROUP BY l_returnflag, l_linestatus""",
    2: """SELECT s_acctbal, s_name, n_name, p_partkey, p_mfgr FROM parts_sold, supplier, partsupp, nation, region, orders[j]
    WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size = 15 AND s_nationkey = n_nationkey
      AND n_regionkey = r_regionkey AND r_name = 'EUROPE' AND ps_supplycost = (SELECT MIN(ps_supplycost)
      FROM partsupp ps, supplier s WHERE ps.ps_partkey = p_partkey AND s.s_suppkey = ps.ps_suppkey)
    ORDER BY s_acctbal DESC LIMIT 100""",
    3: """SELECT l_orderkey, SUM(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority
    FROM customer, orders[j], lineitem[j-1..j] WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey
      AND l_orderkey = o_orderkey AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
    GROUP BY l_orderkey, o_orderdate, o_shippriority ORDER BY revenue DESC LIMIT 10""",
    4: """SELECT o_orderpriority, COUNT(*) AS order_count FROM orders[j]
    WHERE EXISTS (SELECT 1 FROM lineitem[j] WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
    GROUP BY o_orderpriority""",
    5: """SELECT n_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue
    FROM customer, orders[j], lineitem[j], supplier, nation, region WHERE c_custkey = o_custkey
      AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey AND s_nationkey = n_nationkey
      AND n_regionkey = r_regionkey AND r_name = 'ASIA' GROUP BY n_name""",
    6: """SELECT SUM(l_extendedprice * l_discount) AS revenue FROM lineitem[j]
    WHERE l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24""",
    7: """SELECT supp_nation, cust_nation, l_year, SUM(volume) AS revenue FROM (
      SELECT n1.n_name AS supp_nation, n2.n_name AS cust_nation, year(l_shipdate) AS l_year, l_extendedprice AS volume
      FROM supplier, lineitem[j], orders[j], customer, nation n1, nation n2 WHERE s_suppkey = l_suppkey
        AND o_orderkey = l_orderkey AND c_custkey = o_custkey AND s_nationkey = n1.n_nationkey
        AND c_nationkey = n2.n_nationkey) AS shipping GROUP BY supp_nation, cust_nation, l_year""",
    8: """SELECT o_year, SUM(CASE WHEN nation = 'BRAZIL' THEN volume ELSE 0 END) / SUM(volume) AS mkt_share FROM (
      SELECT year(o_orderdate) AS o_year, l_extendedprice AS volume, n2.n_name AS nation
      FROM parts_sold, supplier, lineitem[j], orders[j], nation n2 WHERE p_partkey = l_partkey AND s_suppkey = l_suppkey
        AND l_orderkey = o_orderkey AND s_nationkey = n2.n_nationkey) AS all_nations GROUP BY o_year""",
    9: """SELECT nation, o_year, SUM(amount) AS sum_profit FROM (
      SELECT n_name AS nation, year(o_orderdate) AS o_year, l_extendedprice - ps_supplycost * l_quantity AS amount
      FROM parts_sold, supplier, lineitem[j], partsupp, orders[j], nation WHERE s_suppkey = l_suppkey
        AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey AND o_orderkey = l_orderkey
        AND s_nationkey = n_nationkey) AS profit GROUP BY nation, o_year""",
    10: """SELECT c_custkey, c_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue, n_name
    FROM customer, orders[j], lineitem[j], nation WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey
      AND l_returnflag = 'R' AND c_nationkey = n_nationkey GROUP BY c_custkey, c_name, n_name""",
    11: """SELECT ps_partkey, SUM(ps_supplycost * ps_availqty) AS value FROM partsupp, supplier, nation, orders[j]
    WHERE ps_suppkey = s_suppkey AND s_nationkey = n_nationkey GROUP BY ps_partkey
    HAVING SUM(ps_supplycost * ps_availqty) > (SELECT SUM(ps_supplycost * ps_availqty) * 0.0001 FROM partsupp)""",
    12: """SELECT l_shipmode, COUNT(*) AS n, SUM(CASE WHEN o_orderpriority = '1-URGENT' THEN 1 ELSE 0 END) AS high_line_count
    FROM orders[j], lineitem[j] WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') GROUP BY l_shipmode""",
    13: """SELECT c_count, COUNT(*) AS custdist FROM (
      SELECT c_custkey, COUNT(o_orderkey) AS c_count FROM customer LEFT OUTER JOIN orders[j] ON c_custkey = o_custkey
      GROUP BY c_custkey) AS c_orders GROUP BY c_count""",
    14: """SELECT 100.00 * SUM(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice ELSE 0 END) / SUM(l_extendedprice) AS promo
    FROM lineitem[j], parts_sold WHERE l_partkey = p_partkey""",
    15: """WITH revenue AS (SELECT l_suppkey AS supplier_no, SUM(l_extendedprice) AS total_revenue FROM lineitem[j]
      GROUP BY l_suppkey)
    SELECT s_suppkey, s_name, total_revenue FROM supplier, revenue WHERE s_suppkey = supplier_no
      AND total_revenue = (SELECT MAX(total_revenue) FROM revenue)""",
    16: """SELECT p_brand, p_type, p_size, COUNT(DISTINCT ps_suppkey) AS supplier_cnt FROM partsupp, parts_sold, orders[j]
    WHERE p_partkey = ps_partkey AND ps_suppkey NOT IN (SELECT s_suppkey FROM supplier WHERE s_comment LIKE '%Complaints%')
    GROUP BY p_brand, p_type, p_size""",
    17: """SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem[j], parts_sold WHERE p_partkey = l_partkey
      AND l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem[j] WHERE l_partkey = p_partkey)""",
    18: """SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, SUM(l_quantity) AS quantity
    FROM customer, orders[j], lineitem[j] WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem[j] GROUP BY l_orderkey
      HAVING SUM(l_quantity) > 300) AND c_custkey = o_custkey AND o_orderkey = l_orderkey
    GROUP BY c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice""",
    19: """SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem[j], parts_sold
    WHERE p_partkey = l_partkey AND p_brand = 'Brand#12' AND l_quantity BETWEEN 1 AND 11""",
    20: """SELECT s_name, s_address FROM supplier, nation WHERE s_suppkey IN (SELECT ps_suppkey FROM partsupp
      WHERE ps_availqty > (SELECT 0.5 * SUM(l_quantity) FROM lineitem[j] WHERE l_partkey = ps_partkey
      AND l_suppkey = ps_suppkey)) AND s_nationkey = n_nationkey AND n_name = 'CANADA'""",
    21: """SELECT s_name, COUNT(*) AS numwait FROM supplier, lineitem[j] l1, orders[j], nation WHERE s_suppkey = l1.l_suppkey
      AND o_orderkey = l1.l_orderkey AND EXISTS (SELECT 1 FROM lineitem[j] l2 WHERE l2.l_orderkey = l1.l_orderkey
      AND l2.l_suppkey <> l1.l_suppkey) AND NOT EXISTS (SELECT 1 FROM lineitem[j] l3 WHERE l3.l_orderkey = l1.l_orderkey
      AND l3.l_receiptdate > l3.l_commitdate) AND s_nationkey = n_nationkey GROUP BY s_name""",
    22: """SELECT cntrycode, COUNT(*) AS numcust, SUM(c_acctbal) AS totacctbal FROM (
      SELECT substring(c_phone, 1, 2) AS cntrycode, c_acctbal FROM customer WHERE c_acctbal > (SELECT AVG(c_acctbal)
      FROM customer WHERE c_acctbal > 0.00) AND NOT EXISTS (SELECT 1 FROM orders[j] WHERE o_custkey = c_custkey)) AS custsale
    GROUP BY cntrycode""",
}
