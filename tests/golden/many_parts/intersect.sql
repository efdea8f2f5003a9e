SELECT src, dest FROM m[j] INTERSECT SELECT src, dest FROM m[j-1]
