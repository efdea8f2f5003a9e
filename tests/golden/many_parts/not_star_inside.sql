SELECT to_json(struct(*)) AS row FROM m[j]
