SELECT a.src FROM m[j] a JOIN nodes n ON n.node IN (SELECT src FROM m[j-1])
