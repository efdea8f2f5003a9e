SELECT src, PREV(b.loss) AS before, LAST(b.loss) AS last_loss FROM measurements PATTERN [a, b+] GROUP BY src
