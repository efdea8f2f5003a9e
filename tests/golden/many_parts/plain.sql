SELECT src, loss * 2 AS twice FROM m[j] WHERE loss > 0
