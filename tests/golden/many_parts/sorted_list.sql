SELECT src, array_sort(collect_list(loss)) AS losses FROM m[j] GROUP BY src
