SELECT loss AS __j1 FROM m[j]
