-- measurements[j] in a comment
SELECT src, 'FROM measurements[j]' AS text, "it's [j..j+1]" AS other, /* measurements[j-1]
  over two lines */ loss
FROM measurements /* the last minute */ [j - 1] -- and total_loss[j]
WHERE src <> 'a''b[j]' AND dest LIKE '%\\[%'
