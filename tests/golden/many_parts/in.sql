SELECT src FROM m[j] WHERE src IN (SELECT src FROM m[j-1]) AND dest NOT IN (SELECT node FROM nodes)
