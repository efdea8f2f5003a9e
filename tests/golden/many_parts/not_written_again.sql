SELECT array(1, loss)[0] AS a FROM m[j]
