SELECT m.loss, measurements.src, p.total, `p q`.x
FROM measurements[j] m, measurements[j-1],
     total_loss[j-1] AS p
  LEFT OUTER JOIN nodes ON nodes.node = measurements.src
  JOIN nodes AS n ON n.node = m.src
  CROSS JOIN runs[j-9..j] `p q`
  JOIN helper[j] t(a, b) ON t.a = m.src
