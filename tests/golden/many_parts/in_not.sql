SELECT src FROM m[j] WHERE src NOT IN (SELECT src FROM m[j-1])
