SELECT c.src FROM m[j] a, m[j-1] b RIGHT JOIN nodes c ON b.src = c.node
