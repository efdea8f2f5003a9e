SELECT arr[0], m.arr[1], m.arr[j], map_col['k'], m.nested[0].field[2], array(1, 2, 3)[0], split(src, ',')[0] AS s,
       transform(arr, x -> x[0]) AS t, element_at(arr, 1), map['k']
FROM measurements[j] m
WHERE arr[size(arr) - 1] > 0 AND arr[i] = 1
