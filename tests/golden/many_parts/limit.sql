SELECT src, loss FROM m[j] ORDER BY loss DESC, src LIMIT 10
