SELECT src, tag FROM m[j] LATERAL VIEW explode(tags) t AS tag
