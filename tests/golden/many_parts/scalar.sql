SELECT src FROM m[j] WHERE loss > (SELECT AVG(loss) FROM m[j-9..j])
