SELECT m.src, n.region FROM m[j] m RIGHT JOIN nodes n ON m.src = n.node
