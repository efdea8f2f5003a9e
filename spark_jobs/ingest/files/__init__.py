"""Files that land: finding them, looking into them, reading their rows."""
