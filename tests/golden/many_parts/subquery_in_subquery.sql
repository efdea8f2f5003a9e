SELECT src FROM m[j] a WHERE EXISTS (SELECT 1 FROM nodes n WHERE n.node = a.src AND n.node IN (SELECT src FROM m[j-1]))
