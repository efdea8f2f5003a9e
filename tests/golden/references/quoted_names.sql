SELECT `my table`.`a[j]`, `b``c`
FROM `my table`[j] JOIN `measurements`[j-1] ON `measurements`.src = `my table`.src
JOIN `nodes` ON TRUE
