SELECT a.src, b.name FROM (VALUES ('x', 'first'), ('y', 'second')) AS b(src, name) LEFT JOIN m[j] a ON a.src = b.src
