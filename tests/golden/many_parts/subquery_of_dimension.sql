SELECT node FROM nodes WHERE node IN (SELECT src FROM m[j])
