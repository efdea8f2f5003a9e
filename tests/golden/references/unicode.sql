SELECT 'grüße 😀 [j]' AS `größe`, src FROM measurements[j] WHERE dest = '東京'
