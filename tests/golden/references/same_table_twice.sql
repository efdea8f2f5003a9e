SELECT now.src, now.loss - before.loss AS change
FROM measurements[j] now
JOIN measurements[j - 1] before ON before.src <=> now.src
LEFT ANTI JOIN measurements[j-10..j-2] long_ago ON long_ago.src = now.src
