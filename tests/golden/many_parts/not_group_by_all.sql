SELECT my_own(loss) AS x FROM m[j] GROUP BY ALL
