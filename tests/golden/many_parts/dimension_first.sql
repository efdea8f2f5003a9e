SELECT n.node, m.loss FROM nodes n LEFT JOIN m[j] m ON m.src = n.node
