SELECT src, dest FROM m[j] EXCEPT ALL SELECT src, dest FROM m[j-1]
