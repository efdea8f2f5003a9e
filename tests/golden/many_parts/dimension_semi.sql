SELECT * FROM nodes n LEFT ANTI JOIN m[j] m ON m.src = n.node
