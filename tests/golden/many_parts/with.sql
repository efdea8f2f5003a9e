WITH a (x) AS (SELECT src FROM m[j]), b AS (SELECT node FROM nodes) SELECT a.x FROM a JOIN a AS c ON a.x = c.x JOIN b ON b.node = a.x
